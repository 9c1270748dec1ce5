"""Signatures by keys that people have: they hold for one root, one namespace, and whom --signer names."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tsuishi.archives import signature
from tsuishi.base.errors import UserError

ROOT, OTHER = "a" * 64, "b" * 64


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys of Ada and Bob, of two kinds, and what names both."""
    folder = tmp_path_factory.mktemp("keys")
    for name, kind in (("ada", "ed25519"), ("bob", "ecdsa")):
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", folder / name], check=True)
    lines = [
        f'{name}@example.org namespaces="*" {(folder / name).with_suffix(".pub").read_text()}'
        for name in ("ada", "bob")
    ]
    (folder / "allowed").write_text("# our keys\n" + "".join(lines))
    return folder


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive.zip"


def test_without_a_signature_nobody_signed(archive: Path) -> None:
    assert signature.signers(archive, ROOT) == []


def test_a_signature_is_of_its_key(archive: Path, keys: Path) -> None:
    signature.sign(archive, ROOT, keys / "ada")
    (signer,) = signature.signers(archive, ROOT)
    said = subprocess.run(["ssh-keygen", "-lf", keys / "ada.pub"], capture_output=True, text=True, check=True).stdout
    assert (signer.key, signer.name) == (said.split()[1], "")
    assert [s.name for s in signature.signers(archive, ROOT, keys / "ada.pub")] == ["ada.pub"]
    assert [s.name for s in signature.signers(archive, ROOT, keys / "allowed")] == ["ada@example.org"]
    assert signature.signers(archive, ROOT, keys / "bob.pub") == []


def test_several_sign_and_each_once(archive: Path, keys: Path) -> None:
    for name in ("ada", "bob", "ada"):
        path = signature.sign(archive, ROOT, keys / name)
    assert {s.name for s in signature.signers(archive, ROOT, keys / "allowed")} == {
        "ada@example.org",
        "bob@example.org",
    }
    assert len(json.loads(path.read_text())["signatures"]) == 2


def test_the_envelope_is_a_statement_about_the_manifest(archive: Path, keys: Path) -> None:
    envelope = json.loads(signature.sign(archive, ROOT, keys / "ada").read_text())
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [{"name": "manifest-sha256.txt", "digest": {"sha256": ROOT}}]


def test_ssh_keygen_alone_verifies_it(archive: Path, keys: Path, tmp_path: Path) -> None:
    """As docs/archives.md says to who does not trust tsuishi."""
    envelope = json.loads(signature.sign(archive, ROOT, keys / "ada").read_text())
    payload = base64.b64decode(envelope["payload"])
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    message = b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(payload), payload)
    asked: list[str | Path] = [
        "-I",
        "ada@example.org",
        "-n",
        "archive@tsuishi",
        "-f",
        keys / "allowed",
        "-s",
        tmp_path / "sig",
    ]
    subprocess.run(["ssh-keygen", "-Y", "verify", *asked], input=message, check=True)


def test_the_signature_of_another_archive_is_refused(archive: Path, keys: Path) -> None:
    signature.sign(archive, OTHER, keys / "ada")
    with pytest.raises(UserError, match="it is the signature of another archive"):
        signature.signers(archive, ROOT)


def test_a_signature_of_another_root_is_not_kept(archive: Path, keys: Path) -> None:
    signature.sign(archive, OTHER, keys / "ada")
    signature.sign(archive, ROOT, keys / "bob")
    assert [s.name for s in signature.signers(archive, ROOT, keys / "allowed")] == ["bob@example.org"]


def test_the_statement_of_one_root_with_the_signature_of_another_is_refused(archive: Path, keys: Path) -> None:
    theirs = json.loads(signature.sign(archive, OTHER, keys / "ada").read_text())["signatures"]
    path = signature.sign(archive, ROOT, keys / "bob")
    path.write_text(json.dumps({**json.loads(path.read_text()), "signatures": theirs}))
    with pytest.raises(UserError, match="cannot verify a signature"):
        signature.signers(archive, ROOT)


def test_a_signature_in_another_namespace_is_refused(archive: Path, keys: Path, tmp_path: Path) -> None:
    """What somebody signed for git, say, vouches for no archive."""
    path = signature.sign(archive, ROOT, keys / "ada")
    envelope = json.loads(path.read_text())
    payload = base64.b64decode(envelope["payload"])
    (tmp_path / "m").write_bytes(b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(payload), payload))
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", keys / "ada", tmp_path / "m"], check=True)
    envelope["signatures"][0]["sig"] = base64.b64encode((tmp_path / "m.sig").read_bytes()).decode()
    path.write_text(json.dumps(envelope))
    with pytest.raises(UserError, match="cannot verify a signature"):
        signature.signers(archive, ROOT)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"payload": "a", "payloadType": "application/vnd.in-toto+json", "signatures": []}',
        '{"payload": "e30=", "payloadType": "text/plain", "signatures": [{"sig": "e30="}]}',
        '{"payload": "e30", "payloadType": "application/vnd.in-toto+json", "signatures": [{"sig": "e"}]}',
        "[" * 10_000,
    ],
)  # fmt: skip
def test_what_is_no_signature_is_refused(text: str, archive: Path) -> None:
    signature.file_of(archive).write_text(text)
    with pytest.raises(UserError):
        signature.signers(archive, ROOT)


def test_a_forged_id_of_a_key_counts_for_nothing(archive: Path, keys: Path) -> None:
    path = signature.sign(archive, ROOT, keys / "ada")
    before = signature.signers(archive, ROOT)
    envelope = json.loads(path.read_text())
    envelope["signatures"][0]["keyid"] = "SHA256:" + "A" * 43
    path.write_text(json.dumps(envelope))
    assert signature.signers(archive, ROOT) == before


def test_a_key_that_is_not_there_is_refused(archive: Path, keys: Path) -> None:
    with pytest.raises(UserError, match="cannot sign with "):
        signature.sign(archive, ROOT, keys / "nobody")


def test_without_ssh_keygen_there_is_a_remedy(archive: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shutil.which("ssh-keygen")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="ssh-keygen is not here: install OpenSSH's client"):
        signature.sign(archive, ROOT, keys / "ada")
