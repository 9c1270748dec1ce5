"""Signatures by keys that people have: they hold for one root, one namespace, and whom --signer names."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tsuishi.base.errors import UserError
from tsuishi.extras.handover.archives import signature

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
    assert path.read_text().count("BEGIN SSH SIGNATURE") == 2


def test_ssh_keygen_alone_verifies_it(archive: Path, keys: Path, tmp_path: Path) -> None:
    """As tsuishi/extras/handover/README.md says to who does not trust tsuishi."""
    path = signature.sign(archive, ROOT, keys / "ada")
    asked: list[str | Path] = ["-I", "ada@example.org", "-n", "archive@tsuishi", "-f", keys / "allowed", "-s", path]
    said = f"{ROOT}  manifest-sha256.txt\n".encode()
    subprocess.run(["ssh-keygen", "-Y", "verify", *asked], input=said, check=True)


def test_the_signature_of_another_archive_is_refused(archive: Path, keys: Path) -> None:
    signature.sign(archive, OTHER, keys / "ada")
    with pytest.raises(UserError, match="no signature of this archive, whose root is a"):
        signature.signers(archive, ROOT)


def test_a_signature_of_another_root_is_not_kept(archive: Path, keys: Path) -> None:
    signature.sign(archive, OTHER, keys / "ada")
    signature.sign(archive, ROOT, keys / "bob")
    assert [s.name for s in signature.signers(archive, ROOT, keys / "allowed")] == ["bob@example.org"]


def test_a_signature_of_another_root_beside_a_good_one_is_refused(archive: Path, keys: Path) -> None:
    theirs = signature.sign(archive, OTHER, keys / "ada").read_bytes()
    path = signature.sign(archive, ROOT, keys / "bob")
    path.write_bytes(path.read_bytes() + theirs)
    with pytest.raises(UserError, match="cannot verify a signature"):
        signature.signers(archive, ROOT)


def test_a_signature_in_another_namespace_is_refused(archive: Path, keys: Path, tmp_path: Path) -> None:
    """What somebody signed for git, say, vouches for no archive."""
    (tmp_path / "m").write_text(f"{ROOT}  manifest-sha256.txt\n")
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", keys / "ada", tmp_path / "m"], check=True)
    shutil.move(tmp_path / "m.sig", signature.file_of(archive))
    with pytest.raises(UserError, match="cannot verify a signature"):
        signature.signers(archive, ROOT)


ARMOUR = "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n"


@pytest.mark.parametrize("text", ["", "[]", "-----BEGIN SSH SIGNATURE-----\n" * 9, ARMOUR, ARMOUR * 101])
def test_what_is_no_signature_is_refused(text: str, archive: Path) -> None:
    signature.file_of(archive).write_text(text)
    with pytest.raises(UserError):
        signature.signers(archive, ROOT)


def test_a_key_that_is_not_there_is_refused(archive: Path, keys: Path) -> None:
    with pytest.raises(UserError, match="cannot sign with "):
        signature.sign(archive, ROOT, keys / "nobody")


def test_without_ssh_keygen_there_is_a_remedy(archive: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shutil.which("ssh-keygen")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="ssh-keygen is not here: install OpenSSH's client"):
        signature.sign(archive, ROOT, keys / "ada")
