"""The signature of an archive, in a file beside it: who vouches for its root.

The file is a DSSE envelope around an in-toto Statement, whose subject is the manifest with the root as its digest. Its
signatures are those of `ssh-keygen -Y sign`, with keys that people have for SSH or git, in a namespace of ours: a
signature for something else does not count here. The statement depends on the root alone, so anybody can sign too.

A signature says who vouches for these bytes. It does not say that figures are true, nor that no run was thrown away.
"""

import base64
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from tsuishi.archives.member_names import MANIFEST
from tsuishi.base import files, toml
from tsuishi.base.errors import UserError
from tsuishi.base.toml import Record
from tsuishi.results.record_files import parsed

SUFFIX = ".dsse.json"
NAMESPACE = "archive@tsuishi"
_PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
_PREDICATE_TYPE = "urn:x-tsuishi:archive:1"
_MOST_BYTES, _MOST_SIGNATURES = 1 << 20, 100
# A line of a public key, without the name of a principal before it.
_PUBLIC_KEY = re.compile(r"(?:ssh-|ecdsa-|sk-)[\w@.-]+ [A-Za-z0-9+/=]+(?: .*)?")
_KEY = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_PRINCIPAL = "signer"


class _Signature(Record):
    keyid: Annotated[str, Field(max_length=100)] = ""
    sig: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+=*$")]


class _Envelope(Record):
    payload: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+=*$")]
    payloadType: Literal["application/vnd.in-toto+json"]  # noqa: N815  # DSSE calls it so
    signatures: Annotated[tuple[_Signature, ...], Field(min_length=1, max_length=_MOST_SIGNATURES)]


class Signer(NamedTuple):
    """Whoever signed: the fingerprint of the key; and the name that `--signer` gives the key, empty without."""

    key: str
    name: str = ""


def file_of(archive: Path) -> Path:
    """The file with the signatures of an archive."""
    return archive.with_name(archive.name + SUFFIX)


def sign(archive: Path, root: str, key: Path) -> Path:
    """Sign the root of an archive with a key of SSH; a signature of another key stays. Returns the file.

    key: the private key, or the public key where an agent holds the private one. Raises UserError where it cannot.
    """
    path, payload = file_of(archive), _statement(root)
    before: tuple[_Signature, ...] = ()
    if path.exists():
        old = _envelope(path)
        before = old.signatures if base64.b64decode(old.payload) == payload else ()
    with tempfile.TemporaryDirectory() as folder:
        message = Path(folder) / "message"
        message.write_bytes(_authenticated(payload))
        _ssh_keygen("-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(message), doing=f"sign with {key}")
        signature = message.with_suffix(".sig").read_bytes()
        made = _Signature(keyid=_fingerprint(payload, signature), sig=base64.b64encode(signature).decode())
    others = [known for known in before if known.keyid != made.keyid]
    envelope = _Envelope(
        payload=base64.b64encode(payload).decode(),
        payloadType=_PAYLOAD_TYPE,
        signatures=tuple(sorted([*others, made], key=lambda known: known.keyid)),
    )
    files.write_json(path, envelope.content())
    return path


def signers(archive: Path, root: str, known: Path | None = None) -> list[Signer]:
    """Whoever signed the root of an archive; none where no signature is beside it.

    known: a public key, or a file of allowed signers (see ssh-keygen). With it, only signatures of these keys are
    returned. Raises UserError where the file beside the archive is none, is of another root, or has a signature that
    does not hold.
    """
    path = file_of(archive)
    if not path.exists():
        return []
    envelope = _envelope(path)
    payload = base64.b64decode(envelope.payload)
    if payload != _statement(root):
        raise UserError(f"{path}: it is the signature of another archive, not of the root {root}")
    found = []
    for signature in envelope.signatures:
        text = base64.b64decode(signature.sig)
        key = _fingerprint(payload, text)
        name = _name(payload, text, known) if known else ""
        if name or not known:
            found.append(Signer(key, name or ""))
    return found


def _statement(root: str) -> bytes:
    subject = {"name": MANIFEST, "digest": {"sha256": root}}
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": [subject], "predicateType": _PREDICATE_TYPE}
    return toml.canonical_json({**statement, "predicate": {}}).encode()


def _authenticated(payload: bytes) -> bytes:
    """What is signed: DSSE's pre-authentication encoding of a payload."""
    return b"DSSEv1 %d %s %d %s" % (len(_PAYLOAD_TYPE), _PAYLOAD_TYPE.encode(), len(payload), payload)


def _envelope(path: Path) -> _Envelope:
    envelope = parsed(path, files.read_bytes(path, _MOST_BYTES), _Envelope)
    try:
        for text in (envelope.payload, *(signature.sig for signature in envelope.signatures)):
            base64.b64decode(text, validate=True)
    except ValueError as error:
        raise UserError(f"{path}: not in base64: {error}") from error
    return envelope


def _fingerprint(payload: bytes, signature: bytes) -> str:
    """The fingerprint of the key of a signature. Raises UserError where the signature does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "signature"
        file.write_bytes(signature)
        said = _ssh_keygen(
            *("-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(file)),
            doing="verify a signature",
            message=_authenticated(payload),
        )
    key = _KEY.search(said)
    if not key:
        raise UserError(f"ssh-keygen names no key of a signature: {said.strip()}")
    return key[0]


def _name(payload: bytes, signature: bytes, known: Path) -> str:
    """The name that a file of public keys or allowed signers gives to the signer; empty where it has not the key."""
    lines = files.read_bytes(known, _MOST_BYTES).decode(errors="replace").splitlines()
    allowed = "".join(f"{_allowed(text)}\n" for text in lines)
    with tempfile.TemporaryDirectory() as folder:
        file, allowed_file = Path(folder) / "signature", Path(folder) / "allowed"
        file.write_bytes(signature)
        allowed_file.write_text(allowed, encoding="utf-8")
        both = ("-s", str(file), "-f", str(allowed_file))
        try:
            name = _ssh_keygen("-Y", "find-principals", *both, doing="find a signer").splitlines()[0].strip()
            _ssh_keygen(
                *("-Y", "verify", "-n", NAMESPACE, "-I", name, *both),
                doing="verify a signature",
                message=_authenticated(payload),
            )
        except (UserError, IndexError):
            return ""
    return known.name if name == _PRINCIPAL else name


def _allowed(text: str) -> str:
    return f'{_PRINCIPAL} namespaces="{NAMESPACE}" {text}' if _PUBLIC_KEY.fullmatch(text.strip()) else text


def _ssh_keygen(*arguments: str, doing: str, message: bytes | None = None) -> str:
    """What ssh-keygen says. Raises UserError where it fails, or is not there."""
    try:
        done = subprocess.run(["ssh-keygen", *arguments], input=message, capture_output=True, check=False)  # noqa: S607
    except OSError as error:
        raise UserError(f"cannot {doing}: ssh-keygen is not here: install OpenSSH's client (8.2 or newer)") from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise UserError(f"cannot {doing}: {said[-1] if said else 'ssh-keygen failed'}")
    return done.stdout.decode(errors="replace")
