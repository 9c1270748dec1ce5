"""The signature of an archive, in a file beside it: who vouches for its root.

`ssh-keygen -Y sign` signs the line that `sha256sum manifest-sha256.txt` prints, with keys that people have for SSH or
git, in tsuishi's namespace: a signature for something else does not count here. Several people may sign; their
signatures stand one after the other.

A signature says who vouches for these bytes. It does not say whether figures are true, or runs were thrown away.
"""

import re
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.extras.handover.archives.member_names import MANIFEST

SUFFIX = ".sig"
NAMESPACE = "archive@tsuishi"
_MOST_BYTES, _MOST_SIGNATURES = 1 << 20, 100
_ARMOURED = re.compile(rb"-----BEGIN SSH SIGNATURE-----\n[A-Za-z0-9+/=\n]+-----END SSH SIGNATURE-----\n")
# A line of a public key, without the name of a principal before it.
_PUBLIC_KEY = re.compile(r"(?:ssh-|ecdsa-|sk-)[\w@.-]+ [A-Za-z0-9+/=]+(?: .*)?")
_KEY = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_PRINCIPAL = "signer"


class Signer(NamedTuple):
    """Whoever signed: the fingerprint of the key; and the name that `--signer` gives the key, empty without."""

    key: str
    name: str = ""


def file_of(archive: Path) -> Path:
    """The file with the signatures of an archive."""
    return archive.with_name(archive.name + SUFFIX)


def sign(archive: Path, root: str, key: Path) -> Path:
    """Sign the root of an archive with a key of SSH; signatures of it by other keys stay. Returns the file.

    key: the private key, or the public key where an agent holds the private key. Raises UserError where that fails.
    """
    path = file_of(archive)
    with tempfile.TemporaryDirectory() as folder:
        message = Path(folder) / "message"
        message.write_bytes(_message(root))
        _ssh_keygen("-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(message), doing=f"sign with {key}")
        made = message.with_suffix(".sig").read_bytes()
    kept, own = [], _fingerprint(root, made)
    for known in _signatures(path) if path.exists() else ():
        with suppress(UserError):  # a signature of another archive does not stay
            kept += [known] * (_fingerprint(root, known) != own)
    files.write_bytes(path, b"".join([*kept, made]))
    return path


def signers(archive: Path, root: str, known: Path | None = None) -> list[Signer]:
    """Whoever signed the root of an archive; none where no signature is beside it.

    known: a public key, or a file of allowed signers (see ssh-keygen). With it, only signatures of these keys are
    returned. Raises UserError where the file beside the archive is not a signature, or is not of the archive.
    """
    path, found = file_of(archive), []
    for signature in _signatures(path) if path.exists() else ():
        try:
            key = _fingerprint(root, signature)
        except UserError as error:
            raise UserError(f"{path}: no signature of this archive, whose root is {root}: {error}") from error
        name = _name(root, signature, known) if known else ""
        if name or not known:
            found.append(Signer(key, name))
    return found


def _message(root: str) -> bytes:
    """The signed text: the line that `sha256sum` prints of the manifest."""
    return f"{root}  {MANIFEST}\n".encode()


def _signatures(path: Path) -> list[bytes]:
    """The signatures in a file, in ssh-keygen's armour. Raises UserError where it has none, or too many."""
    found = _ARMOURED.findall(files.read_bytes(path, _MOST_BYTES))
    if not 0 < len(found) <= _MOST_SIGNATURES:
        raise UserError(f"{path}: it has {len(found)} signatures of ssh-keygen, and 1 to {_MOST_SIGNATURES} are read")
    return found


def _fingerprint(root: str, signature: bytes) -> str:
    """The fingerprint of the key of a signature. Raises UserError where the signature does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "signature"
        file.write_bytes(signature)
        said = _ssh_keygen(
            *("-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(file)),
            doing="verify a signature",
            message=_message(root),
        )
    key = _KEY.search(said)
    if not key:
        raise UserError(f"ssh-keygen names no key of a signature: {said.strip()}")
    return key[0]


def _name(root: str, signature: bytes, known: Path) -> str:
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
                message=_message(root),
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
