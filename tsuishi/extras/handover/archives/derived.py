"""The files of an archive that follow from its runs and its record: a verification makes them again, and compares.

To make them in a new way needs a new schema of archives.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.environments.sbom import bill_of_record
from tsuishi.extras.handover.archives import archive_description
from tsuishi.extras.handover.archives.archive_record import ArchiveRecord
from tsuishi.extras.handover.archives.citation import authors_of, citation
from tsuishi.extras.handover.archives.crate import metadata
from tsuishi.extras.handover.archives.member_names import CITATION, CRATE, MANIFEST, REPORT, SBOMS
from tsuishi.results.directory import RunDirectory


def derived(runs: Sequence[RunDirectory], record: ArchiveRecord, names: Iterable[str]) -> dict[str, bytes]:
    """The SBOMs, citation and metadata of an archive of runs. names: of its other files, without the manifest.

    Raises UserError for an author that cannot be read.
    """
    about = archive_description.about(runs, authors_of(record.authors), record.licence)
    made = dict(_boms(runs, record.tsuishi_version))
    if about.authors:
        made[CITATION] = citation(about.title, about.description, about.authors, about.licence, about.date)
    others = [*names, *made, MANIFEST]
    return {**made, CRATE: metadata(about, runs, others)}


def is_derived(name: str) -> bool:
    """Whether a file of an archive follows from the others."""
    return name in (CRATE, CITATION) or name.startswith(f"{SBOMS}/")


def differences(
    there: Mapping[str, bytes], runs: Sequence[RunDirectory], record: ArchiveRecord, names: Iterable[str]
) -> Iterator[str]:
    """A line for each derived file that is not what runs and record give. names: of all files of the archive."""
    others = [name for name in names if not is_derived(name) and name != MANIFEST]
    yield from (
        f"{name}: an archive holds no report: `invoke report --archive` makes it"
        for name in others
        if name.startswith(f"{REPORT}/")
    )
    try:
        expected = derived(runs, record, others)
    except UserError as error:
        yield str(error)
        return
    for name in sorted({*expected, *there}):
        if name not in there:
            yield f"{name}: it is not there, and its runs give it"
        elif name not in expected:
            yield f"{name}: its runs do not give it"
        elif _meaning(name, there[name]) != _meaning(name, expected[name]):
            yield f"{name}: other content than its runs give"


def not_compared(record: ArchiveRecord, names: Iterable[str]) -> str:
    """The parts of an archive that cannot be compared with other parts, in words: a signature alone covers them."""
    folders = {name.partition("/")[0] for name in names}
    said = ["who may be cited", "the licence", "the list of omissions"]
    said += [f"the salted digests of {len(record.scrubbed_files)} scrubbed files"] * record.scrubbed
    said += ["inputs other than workloads"] * ("inputs" in folders)
    said += [f"{folder}/" for folder in ("images", "report") if folder in folders]
    return ", ".join(said)


def _meaning(name: str, text: bytes) -> object:
    """The meaning of a file: the values of JSON, or the text itself where it cannot be read."""
    if name == CITATION:
        return text
    try:
        return files.parse_json(name, text)
    except UserError:
        return text


def _boms(runs: Sequence[RunDirectory], version: str) -> Iterator[tuple[str, bytes]]:
    """The bill of materials of each environment. version: of the tsuishi that made the archive."""
    for record in archive_description.environments_of(runs):
        content = json.dumps(record.sbom or bill_of_record(record, version), indent=1, ensure_ascii=False) + "\n"
        place = (record.realised_id or "unknown").rpartition(":")[2][:12]
        yield f"{SBOMS}/{record.name}-{place}.cdx.json", content.encode()
