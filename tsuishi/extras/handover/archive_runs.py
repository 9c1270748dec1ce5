"""`invoke archive` and `invoke sign`: runs as one file that can be handed over, and a signature beside it."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tsuishi import __version__
from tsuishi.base import files, seals, units
from tsuishi.base.errors import UserError
from tsuishi.base.home import expanded, home
from tsuishi.commands.chain import Chain
from tsuishi.commands.report_runs import runs_of_chain
from tsuishi.extras.handover import archived_software
from tsuishi.extras.handover.archives import archive_check, archive_description, signature
from tsuishi.extras.handover.archives.anonymity import Identity, Scrubber, identity_here, scrubbed
from tsuishi.extras.handover.archives.archive_record import ArchivedRun, ArchiveRecord, ScrubbedFile
from tsuishi.extras.handover.archives.bundle import Bundle
from tsuishi.extras.handover.archives.derived import derived
from tsuishi.extras.handover.archives.member_names import CITATION, INPUTS, RECORD, RUNS, SUFFIX
from tsuishi.extras.handover.archives.run_inputs import RunInputs
from tsuishi.extras.handover.archives.secret_search import Secrets, secrets_here
from tsuishi.extras.handover.settings import of_handover
from tsuishi.plan.session import Session
from tsuishi.results.assurance import OF_ITS_USER
from tsuishi.results.directory import RunDirectory
from tsuishi.results.verification import Verification, verify

_FOLDER = "archives"
_REMEDY = "--anonymous puts [redacted] in its place"
_REMEDY_IN_INPUTS = "inputs keep their digests: take it out of that file, and measure again"
# A salt keeps others from guessing what a scrubbed file said: the key of this user makes it, of the file's name and
# content, so that this user alone can make it again, and prove which file it was.
_SALT = "salt of an anonymous archive"


def archive(chain: Chain) -> None:
    """Archive the named runs, or the latest. Raises UserError where a run is not verified, or holds a secret."""
    session, options = chain.session, chain.options
    runs = runs_of_chain(chain)
    if len({run.id for run in runs}) < len(runs):
        raise UserError("two of these runs have the same id: an archive has a run once")
    if options.has("anonymous") and options.has("with_images"):
        raise UserError("--anonymous and --with-images exclude each other: an image names the mirror of its base")
    with files.private_folder() as folder:
        packing = _Packing(session, folder, options.has("anonymous"))
        for name in ("with_images", "with_artifacts"):
            if options.has(name):
                packing.wanted.append(name)
        path, root = packing.write(runs, options.text("to"))
    for line in packing.left_out:
        session.screen.say(f"left out: {line}")
    if packing.scrubbed_files:
        session.screen.say(f"scrubbed: {len(packing.scrubbed_files)} files, which the archive names")
    said = f"{path}, {units.megabytes(path.stat().st_size)}, runs: {len(runs)}; root {root}"
    session.screen.say(f"archive: {said}; not signed: `invoke sign` does it")


def sign(chain: Chain) -> None:
    """Sign archives with a key of SSH. Raises UserError where an archive is not verified."""
    session, options = chain.session, chain.options
    if not options.has("archive") or not options.has("key"):
        raise UserError("say what to sign, and by which key: invoke sign --archive FILE --key ~/.ssh/id_ed25519")
    for path in map(Path, options.paths("archive")):
        found = archive_check.verify_archive(path, session.words)
        if not found.is_verified:
            raise UserError(f"{found.faults[0]}; only a verified archive is signed")
        file = signature.sign(path, found.root, expanded(options.text("key")))
        keys = ", ".join(signer.key for signer in signature.signers(path, found.root))
        session.screen.say(f"signature: {file}, of root {found.root}, by {keys}")


class _Packing:
    """Runs on their way into an archive; `folder` holds files that are made for it."""

    def __init__(self, session: Session, folder: Path, anonymous: bool) -> None:
        self._session, self._folder, self._anonymous = session, folder, anonymous
        # The software that goes in, too: with_images, with_artifacts.
        self.wanted: list[str] = []
        self.left_out: list[str] = []
        self.scrubbed_files: list[ScrubbedFile] = []
        self._secrets = secrets_here(os.environ, home(), _urls(session))
        self._identity = _identity(session, self._secrets)

    def write(self, runs: Sequence[RunDirectory], to: str) -> tuple[Path, str]:
        """Write the archive of runs into `to`, a folder or the name of a file. Returns its path and its root."""
        verified = [(run, self._verified(run)) for run in runs]
        if self._anonymous:
            verified = [self._scrubbed(run) for run, _ in verified]
        runs = [run for run, _ in verified]
        bundle = Bundle()
        for run in runs:
            bundle.add_folder(f"{RUNS}/{run.id}", run.path, OF_ITS_USER)
        bundle.files |= {name: text for run in runs for name, text in self._inputs(run)}
        self._add_software(bundle, runs)
        authors = () if self._anonymous else of_handover(self._session.settings).authors
        if not authors:
            why = "an anonymous archive names no authors" if self._anonymous else "tsuishi.authors names none"
            self.left_out.append(f"{CITATION}: {why}")
        record = self._record([found for _, found in verified], authors)
        bundle.files[RECORD] = (
            json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
        ).encode()
        bundle.files |= derived(runs, record, list(bundle.files))
        self._refuse_secrets(bundle)
        target = expanded(to) if to else self._session.checkout.from_here(_FOLDER)
        if target.suffix == ".zip":
            return bundle.write(lambda _: target)
        return bundle.write(lambda root: target / f"{archive_description.file_name(runs, root)}{SUFFIX}")

    def _verified(self, run: RunDirectory) -> Verification:
        found = verify(run, self._session.words)
        if not found.is_verified:
            raise UserError(f"{found.faults[0]}; only a verified run is archived")
        if (recorded := run.run().run_id) != run.id:
            raise UserError(f"{run.path}: it is run {recorded}: an archive has runs by their ids; rename the folder")
        return found

    def _scrubbed(self, run: RunDirectory) -> tuple[RunDirectory, Verification]:
        """An anonymous copy of a run; notes which of its files were scrubbed."""
        copy, names = scrubbed(run, self._folder / RUNS / run.id, Scrubber(self._identity), self._session.words)
        for name in names:
            raw = files.sha256_of(run.path / name)
            salt = seals.seal(f"{name} {raw}".encode(), _SALT)
            salted = hashlib.sha256(salt.encode() + (run.path / name).read_bytes()).hexdigest()
            self.scrubbed_files.append(ScrubbedFile(file=f"{RUNS}/{run.id}/{name}", raw=salted))
        return copy, self._verified(copy)

    def _inputs(self, run: RunDirectory) -> Iterator[tuple[str, bytes]]:
        inputs = RunInputs(run, self._session.checkout)
        self.left_out += [f"inputs of run {run.id}: {why}" for why in inputs.missing]
        for name, text in inputs.files.items():
            yield f"{INPUTS}/{run.id}/{name}", text

    def _add_software(self, bundle: Bundle, runs: Sequence[RunDirectory]) -> None:
        records = archive_description.environments_of(runs)
        if "with_images" in self.wanted:
            archived_software.images(self._session, records, self._folder / "exports", bundle, self.left_out)
        if "with_artifacts" in self.wanted:
            archived_software.artifacts(self._session, records, bundle, self.left_out)

    def _record(self, verified: Sequence[Verification], authors: tuple[str, ...]) -> ArchiveRecord:
        return ArchiveRecord(
            tsuishi_version=__version__,
            scrubbed=self._anonymous,
            runs=tuple(ArchivedRun(run_id=run.run_id, root=run.root, trials=run.trials) for run in verified),
            scrubbed_files=tuple(self.scrubbed_files),
            authors=authors,
            licence=of_handover(self._session.settings).licence,
            left_out=tuple(self.left_out),
        )

    def _refuse_secrets(self, bundle: Bundle) -> None:
        """Raise UserError where a file holds a secret; or, in an anonymous archive, names its user or machine.

        Inputs are not searched for names: they are public files.
        """
        inputs, own = Bundle(), Bundle()
        for name, source in bundle.files.items():
            (inputs if name.startswith(f"{INPUTS}/") else own).files[name] = source
        inputs.refuse_secrets(Secrets(self._secrets), _REMEDY_IN_INPUTS)
        own.refuse_secrets(Secrets(self._secrets), _REMEDY)
        if self._anonymous:
            own.refuse_secrets(self._identity.search(), "it cannot be made anonymous")


def _urls(session: Session) -> tuple[str, ...]:
    """The addresses in settings and variables: they may hold passwords, and name hosts of this site."""
    settings = session.settings
    proxies = [
        value for name, value in os.environ.items() if name.lower().endswith("_proxy") and name.lower() != "no_proxy"
    ]
    return (*settings.indexes, *settings.find_links, *settings.mirrors.values(), *settings.data_urls, *proxies)


def _identity(session: Session, secrets: frozenset[str]) -> Identity:
    """The identity of this user, without names that are words of the suites: these cannot be distinguished."""
    settings, checkout = session.settings, session.checkout
    folders = {checkout.root: "[checkout]", settings.cache: "[cache]", settings.results.resolve(): "[results]"}
    public = b"\n".join(path.read_bytes() for path in sorted(checkout.suites.glob("[!.]*.toml"))).decode().lower()
    return identity_here(secrets, folders, _urls(session), public)
