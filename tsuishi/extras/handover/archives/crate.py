"""ro-crate-metadata.json: an archive described as an RO-Crate 1.1 that is a Process Run Crate 0.5.

The crate says what ran (an action for each run), with which software, on which inputs, and what came out. It lists
folders; the manifest lists every file. It does not depend on when or where the archive is made.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from tsuishi.extras.handover.archives.archive_description import About, environments_of, times_of
from tsuishi.extras.handover.archives.citation import Author
from tsuishi.extras.handover.archives.member_names import CITATION, CRATE, INPUTS, MANIFEST, RECORD, RUNS
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import EnvironmentRecord

_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_SPECIFICATION = "1.1"
_SAID = {
    "runs": "runs, as their runner wrote them",
    "inputs": "what decided the runs: suites, axes, specifications, locks, sources, workloads",
    "sboms": "what is installed in the environments (CycloneDX)",
    "images": "the images of the environments, as `invoke export` writes them",
    "artifacts": "the packages that environments are built from",
}
_FILES = {
    MANIFEST: ("the SHA-256 of every file", "text/plain"),
    RECORD: ("the runs in the archive, and what was left out", "application/json"),
    CITATION: ("how to cite the archive", "text/yaml"),
}
_Add = Callable[..., dict[str, str]]  # adds an entity to a crate, and gives its reference


def metadata(about: About, runs: Sequence[RunDirectory], names: Sequence[str]) -> bytes:
    """The text of ro-crate-metadata.json. names: the files that the archive has beside it."""
    crate = ROCrate(version=_SPECIFICATION)

    def add(identifier: str, **properties: Any) -> dict[str, str]:
        crate.add(ContextEntity(crate, identifier, properties=properties))
        return {"@id": identifier}

    authors = [_author(add, author) for author in about.authors]
    parts = [_folder(add, name) for name in sorted({name.partition("/")[0] for name in names} & _SAID.keys())]
    parts += [_file(add, name) for name in sorted(names) if name in _FILES]
    actions = [action for number, run in enumerate(runs, 1) for action in _run(add, number, run, names, authors)]
    root = crate.root_dataset
    root["name"], root["description"], root["datePublished"] = about.title, about.description, about.date
    root["license"] = _licence(add, about.licence)
    root["conformsTo"] = add(_PROFILE, **{"@type": "CreativeWork"}, name="Process Run Crate", version="0.5")
    root["hasPart"] = [*parts, *({"@id": f"{RUNS}/{run.run().run_id}/"} for run in runs)]
    root["mentions"] = actions
    if authors:
        root["author"] = authors
    content = crate.metadata.generate()
    content["@graph"] = [{key: _compact(value) for key, value in entity.items()} for entity in content["@graph"]]
    content["@graph"].sort(key=lambda entity: (entity["@id"] != CRATE, entity["@id"] != "./", entity["@id"]))
    return (json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _compact(value: Any) -> Any:
    """A list of a single value as RO-Crate writes it: as the value."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _run(
    add: _Add, number: int, run: RunDirectory, names: Sequence[str], authors: list[dict[str, str]]
) -> Iterator[dict[str, str]]:
    """The entities of a run; gives its action."""
    record, (began_at, ended_at) = run.run(), times_of(run)
    result = f"{RUNS}/{record.run_id}/"
    add(result, **{"@type": "Dataset"}, name=f"run {record.run_id}", description=f"{len(record.plan)} planned trials")
    tsuishi = add(
        f"urn:x-tsuishi:software:{record.tsuishi_version or 'unknown'}",
        **{"@type": "SoftwareApplication"},
        name="tsuishi",
        softwareVersion=record.tsuishi_version or "unknown",
    )
    asked: list[dict[str, str]] = []
    if any(name.startswith(f"{INPUTS}/{record.run_id}/") for name in names):
        inputs = f"{INPUTS}/{record.run_id}/"
        asked.append(add(inputs, **{"@type": "Dataset"}, name=f"inputs of run {record.run_id}"))
    environments = [_environment(add, environment) for environment in environments_of([run])]
    yield add(
        f"#run-{number}",
        **{"@type": "CreateAction"},
        name=f"invoke run-suite: {record.run_id}",
        description=f"measured by profile {record.profile}, seed {record.seed}",
        instrument=tsuishi,
        object=[*asked, *environments],
        result={"@id": result},
        **({"startTime": began_at} if began_at else {}),
        **({"endTime": ended_at} if ended_at else {}),
        **({"agent": authors} if authors else {}),
    )


def _environment(add: _Add, record: EnvironmentRecord) -> dict[str, str]:
    return add(
        f"#environment-{record.name}-{record.realised_id or 'unknown'}",
        **{"@type": "PropertyValue"},
        name=f"environment {record.name}",
        value=record.realised_id or "unknown",
        description=record.title or record.name,
    )


def _folder(add: _Add, name: str) -> dict[str, str]:
    return add(f"{name}/", **{"@type": "Dataset"}, name=name, description=_SAID[name])


def _file(add: _Add, name: str) -> dict[str, str]:
    description, kind = _FILES[name]
    return add(name, **{"@type": "File"}, name=name, description=description, encodingFormat=kind)


def _licence(add: _Add, licence: str) -> Any:
    if not licence:
        return "No licence is given: ask the authors."
    return add(
        f"https://spdx.org/licenses/{licence}",
        **{"@type": "CreativeWork"},
        name=licence,
        description=f"the licence {licence}, by its identifier in the SPDX list",
    )


def _author(add: _Add, author: Author) -> dict[str, str]:
    kind = "Person" if author.given else "Organization"
    return add(author.orcid or f"#{quote(author.name)}", **{"@type": kind}, name=author.name)
