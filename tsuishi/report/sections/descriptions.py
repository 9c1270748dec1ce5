"""Records in words: what the environments and machines of a run are, and the command that runs it again."""

import shlex
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tsuishi.base.language import mark, t
from tsuishi.report.parts.wording import NOTHING, Table, text_cell
from tsuishi.verdicts.evidence import Evidence

# A base's digest where none is known.
UNPINNED = mark("unpinned")


def environment_records(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Environment records by id, in the order of their names."""
    found = evidence.recorded("environment").items()
    return dict(sorted(found, key=lambda item: (item[1]["name"], str(item[1].get("realised_id")))))


def environment_table(evidence: Evidence) -> Table:
    """What every environment is, side by side."""
    records = environment_records(evidence)
    fields = [{**_environment(record), t("flags reported"): _flags(evidence, id_)} for id_, record in records.items()]
    return _side_by_side("", [record["name"] for record in records.values()], fields)


def package_table(evidence: Evidence) -> Table:
    """Packages by environments: which version of each is in which."""
    records = environment_records(evidence).values()
    lists = [record.get("packages") or {} for record in records]
    names = sorted({name for packages in lists for name in packages}, key=lambda name: (name.lower(), name))
    return _side_by_side(t("package"), [record["name"] for record in records], lists, names)


def machine_table(evidence: Evidence) -> Table:
    """What the machines are, side by side."""
    fields = [_machine(record) for record in evidence.recorded("machine").values()]
    numbers = range(1, len(fields) + 1)
    labels = [t("machine {number}", number=one) for one in numbers] if len(fields) > 1 else [t("machine")]
    return _side_by_side("", labels, fields)


def machine_text(machine: dict[str, Any]) -> str:
    """A machine record in a few words."""
    gpus = Counter(gpu["name"] for gpu in machine.get("gpus") or [])
    text = ", ".join(f"{count} × {name}" for name, count in sorted(gpus.items())) or t("no GPU")
    cpu = machine.get("cpu") or {}
    return t(
        "{cpu} ({cores} logical cores, {gpus})",
        cpu=cpu.get("model") or t("an unknown CPU"),
        cores=cpu.get("logical"),
        gpus=text,
    )


def command_line(arguments: dict[str, Any]) -> str:
    """The command that runs the same again, from a run's arguments: what was not given is left out.

    It is shown and copied into shells, so whatever is in a value is one word of it, on one line.
    """
    words = ["invoke", "build", "run-suite"]
    for name, value in arguments.items():
        if value is not None and value is not False and value not in ("", []):
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f"={text}"))
    return " ".join(shlex.quote(" ".join(word.split())) for word in [*words, "report"])


def _side_by_side(
    corner: str, labels: list[str], fields: list[dict[str, Any]], names: Iterable[str] | None = None
) -> Table:
    """A row per name (every field's, where none are given), a column per label."""
    names = dict.fromkeys(name for one in fields for name in one) if names is None else names
    rows = [[text_cell(name), *[text_cell(one.get(name, NOTHING)) for one in fields]] for name in names]
    return Table([corner, *labels], rows)


def _environment(record: dict[str, Any]) -> dict[str, Any]:
    """An environment record as lines of a table."""
    base, image = record.get("base") or {}, record.get("image") or {}
    versions = ", ".join(f"{name} {version}" for name, version in (record.get("versions") or {}).items())
    changes = [
        t("{used} for {asked}", used=change["used"], asked=change["asked"])
        for change in record.get("substitutions") or []
    ]
    size, none = image.get("size_bytes"), t("none")
    return {
        t("title"): record.get("title"),
        t("framework"): versions,
        "Python": record.get("python"),
        "CUDA": record.get("cuda") or none,
        "cuDNN": record.get("cudnn") or none,
        t("engine"): f"{record.get('engine')} {record.get('engine_version') or ''}".strip(),
        t("sandbox"): record.get("sandbox") or (t("its container") if image else t("not recorded")),
        t("variables of the user's"): ", ".join(record.get("variables") or []) or none,
        t("base asked for"): base.get("reference") or none,
        t("base used"): base.get("used") or none,
        t("base digest asked for"): t(base.get("digest") or UNPINNED) if base else none,
        t("base image got"): base.get("image_id") or t("not recorded"),
        t("substitutions"): "; ".join(changes) or none,
        t("spec id"): record.get("spec_id"),
        t("realised id"): record.get("realised_id"),
        t("lock, SHA-256"): record.get("lock_sha256"),
        t("image"): f"{image.get('id')}, {size / 2**20:,.0f} MiB" if size else image.get("id") or none,
        t("packages"): len(record.get("packages") or {}),
    }


def _flags(evidence: Evidence, environment_record: str) -> str:
    """What the workloads of an environment reported as set: threads, TF32, cudnn.benchmark and the like."""
    found = set()
    for trial in evidence.results.details.values():
        if trial.get("environment_record") == environment_record:
            flags = (trial.get("reported") or {}).get("flags") or {}
            found |= {f"{name} {value}" for name, value in flags.items()}
    return ", ".join(sorted(found)) or t("none")


def _machine(record: dict[str, Any]) -> dict[str, Any]:
    """A machine record as lines of a table."""
    cpu = record.get("cpu") or {}
    fields = {
        "CPU": cpu.get("model"),
        t("physical / logical cores"): f"{cpu.get('physical')} / {cpu.get('logical')}",
        t("memory, MiB"): record.get("memory_mib"),
        t("operating system"): record.get("os"),
        t("kernel"): record.get("kernel"),
        t("NVIDIA driver"): record.get("driver") or t("none"),
    }
    for number, gpu in enumerate(record.get("gpus") or []):
        texts = [f"{name.replace('_', ' ')} {value}" for name, value in gpu.items() if name != "name"]
        fields[f"GPU {number}"] = ", ".join([str(gpu.get("name")), *texts])
    return fields
