"""Records in words: the environments and machines of a run, and the command that runs it again."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tsuishi.base.language import in_words, mark, t
from tsuishi.base.option_table import task_with
from tsuishi.report.parts.declarations import ENVIRONMENT, Column, Tables, names_without_axes
from tsuishi.report.parts.wording import NOTHING, Table, text_cell
from tsuishi.results import same_machine
from tsuishi.results.records import (
    BaseRecord,
    EnvironmentRecord,
    GpuRecord,
    Image,
    MachineRecord,
    Processor,
)
from tsuishi.results.run_record import RUN_SUITE
from tsuishi.specs.trial_spec import Value
from tsuishi.verdicts.evidence import Evidence

_FIELD = Column("field", "string", "a fact of the environment")
TABLES: Tables = {
    "environments": (_FIELD, ENVIRONMENT, Column("value", "string", "as recorded")),
    "packages": (Column("package", "string", "name"), ENVIRONMENT, Column("version", "string", "as installed")),
}
# Stands for the digest of a base that has no known digest.
UNPINNED = mark("unpinned")

# As nvidia-smi says it.
_ENABLED = {True: mark("enabled"), False: mark("disabled")}
# The facts of a GPU in the order in which they are shown.
_GPU_WORDS = {
    "index": mark("index {value}"),
    "uuid": mark("UUID {value}"),
    "compute_capability": mark("compute capability {value}"),
    "memory_mib": mark("memory {value} MiB"),
    "memory_reserved_mib": mark("{value} MiB of it reserved by the driver"),
    "ecc": mark("ECC {value}"),
    "power_limit_w": mark("power limit {value} W"),
    "power_limit_default_w": mark("usual power limit {value} W"),
    "sm_clock_max_mhz": mark("SM clock up to {value} MHz"),
    "sm_clock_set_mhz": mark("SM application clock {value} MHz"),
    "memory_clock_max_mhz": mark("memory clock up to {value} MHz"),
    "persistence_mode": mark("persistence mode {value}"),
    "compute_mode": mark("compute mode {value}"),
    "power_reading": mark("power read as {value}"),
    "pcie_generation_max": mark("PCIe up to generation {value}"),
    "pcie_lanes_max": mark("PCIe link width up to ×{value}"),
    "display_active": mark("display {value}"),
}


def environment_records(evidence: Evidence) -> dict[str, EnvironmentRecord]:
    """Environment records by id, in the order of their names."""
    records = evidence.environment_records.items()
    return dict(sorted(records, key=lambda item: (item[1].name, str(item[1].realised_id))))


def environment_table(evidence: Evidence) -> Table:
    """All environments side by side."""
    records, flags = environment_records(evidence), _flags(evidence)
    title, none = t("flags reported"), t("none")
    fields = [{**environment_facts(record), title: flags.get(id_) or none} for id_, record in records.items()]
    return _side_by_side("", [record.name for record in records.values()], fields)


def package_table(evidence: Evidence) -> Table:
    """The version of every package in every environment."""
    records = environment_records(evidence).values()
    lists = [record.packages or {} for record in records]
    names = sorted({name for packages in lists for name in packages}, key=lambda name: (name.lower(), name))
    return _side_by_side(t("package"), [record.name for record in records], lists, names)


def machine_table(evidence: Evidence) -> Table:
    """All machines side by side."""
    fields = [machine_facts(*records.values()) for records in evidence.records_of_machines.values()]
    numbers = range(1, len(fields) + 1)
    labels = [t("machine {number}", number=number) for number in numbers] if len(fields) > 1 else [t("machine")]
    return _side_by_side("", labels, fields)


def machine_text(machine: MachineRecord) -> str:
    """A machine record in a few words."""
    text = _counted(gpu.name for gpu in machine.gpus or []) or t("no GPU")
    cpu = machine.cpu or Processor()
    name = cpu.model or t("an unknown CPU")
    return t("{cpu} ({cores} logical cores, {gpus})", cpu=name, cores=cpu.logical, gpus=text)


def command_line(arguments: Mapping[str, Value | tuple[Value, ...]], task: str = RUN_SUITE) -> str:
    """The command that repeats a run of a task, from the run's arguments; arguments that were not given are left out.

    Readers copy the command into a shell: it is a single line, in which every value is a single word.
    """
    is_search = task == task_with("quantity")
    before, after = (["invoke", task], []) if is_search else (["invoke", "build", "run-suite"], ["report"])
    words = []
    for name, value in arguments.items():
        if value is not None and value is not False and value not in ("", ()):
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f"={text}"))
    return " ".join(shlex.quote(" ".join(word.split())) for word in [*before, *words, *after])


def _side_by_side(
    corner: str, labels: list[str], fields: Sequence[Mapping[str, Any]], names: Iterable[str] | None = None
) -> Table:
    """A row per name, a column per label. names: without them, the names of all fields."""
    names = dict.fromkeys(name for column in fields for name in column) if names is None else names
    rows = [[text_cell(name), *[text_cell(column.get(name, NOTHING)) for column in fields]] for name in names]
    return Table([corner, *labels], rows)


def as_rows(name: str, table: Table) -> list[dict[str, Any]]:
    """The cells of a table of environments, as rows of CSV: the title of the cell's row, the environment, the text."""
    columns, labels = names_without_axes(TABLES[name]), table.columns[1:]
    return [
        dict(zip(columns, (row[0].text, label, cell.text), strict=True))
        for row in table.rows
        for label, cell in zip(labels, row[1:], strict=True)
    ]


def environment_facts(record: EnvironmentRecord) -> dict[str, Any]:
    """The rows of a column of the table of environments."""
    base, image, none = record.base or BaseRecord(), record.image, t("none")
    versions = ", ".join(f"{name} {version}" for name, version in (record.versions or {}).items())
    digests = record.folders or {}
    variables = [f"{name} {digests.get(name, '')}".strip() for name in record.variables or []]
    changes = [t("{used} for {asked}", used=change.used, asked=change.asked) for change in record.substitutions or []]
    return {
        t("title"): record.title,
        t("framework"): versions,
        "Python": record.python,
        "CUDA": record.cuda or none,
        "cuDNN": record.cudnn or none,
        t("engine"): f"{record.engine} {record.engine_version or ''}".strip(),
        t("sandbox"): record.sandbox or (t("its container") if image else t("not recorded")),
        t("variables of the user's"): ", ".join(variables) or none,
        t("base asked for"): base.reference or none,
        t("base used"): base.used or none,
        t("base digest asked for"): t(base.digest or UNPINNED) if record.base else none,
        t("base image got"): base.image_id or t("not recorded"),
        t("substitutions"): "; ".join(changes) or none,
        t("spec id"): record.spec_id,
        t("realised id"): record.realised_id,
        t("lock, SHA-256"): record.lock_sha256,
        t("image"): _image(image) or none,
        t("packages"): len(record.packages or {}),
    }


def _image(image: Image | None) -> str | None:
    if image is None or not image.size_bytes:
        return image.id if image else None
    return f"{image.id}, {image.size_bytes / 2**20:,.0f} MiB"


def _flags(evidence: Evidence) -> dict[str, str]:
    """The flags that workloads reported, by environment record: threads, TF32, cudnn.benchmark and others."""
    results = evidence.results
    reported: dict[str, set[tuple[str, str]]] = {}
    for record, details in zip(results.trials["environment_record"], results.details, strict=True):
        reported.setdefault(record, set()).update((name, str(value)) for name, value in details.flags.items())
    texts = {
        record: ", ".join(sorted(f"{name} {value}" for name, value in flags)) for record, flags in reported.items()
    }
    return {record: text for record, text in texts.items() if text}


def machine_facts(*records: MachineRecord) -> dict[str, str]:
    """The rows of a column of the table of machines; what is not known has no row.

    records: of the same machine. Where they differ, a row has all of their values.
    """
    return shared_values(dict(_machine_rows(record)) for record in records)


def shared_values(several: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The facts of several records as those of a single record: every value of a fact, in words."""
    found: dict[str, dict[str, None]] = {}
    for facts in several:
        for name, value in facts.items():
            found.setdefault(name, {})[str(value)] = None
    return {name: in_words(values) for name, values in found.items()}


def _machine_rows(record: MachineRecord) -> Iterator[tuple[str, str]]:
    known = same_machine.facts(record)
    unlimited = {f"limits.{name}" for name, value in (record.limits or ()) if value is None}
    for name in dict.fromkeys((*same_machine.FACTS, *known)):
        if name == "cpu.physical":
            cores = (known.get(f"cpu.{which}") or NOTHING for which in ("physical", "logical"))
            yield fact_label(name), " / ".join(map(str, cores))
        elif name == "gpus.name":
            if name in known:
                yield fact_label(name), _counted(known[name]) or t("none")
            for number, gpu in enumerate(record.gpus or []):
                yield f"GPU {number}", ", ".join([gpu.name, *_gpu(gpu)])
        elif name in ("links", "peer_to_peer"):
            if name in known:
                yield fact_label(name), _reach(record) or fact_text(name, known[name])
        elif name == "driver" or name in unlimited:
            yield fact_label(name), fact_text(name, known.get(name))
        elif name in known and name != "cpu.logical" and not name.startswith("gpus."):
            yield fact_label(name), fact_text(name, known[name])


def fact_label(name: str) -> str:
    """The label of a fact of a machine, by its name in same_machine.FACTS; an unknown name is its own label."""
    return t(same_machine.FACTS[name].label) if name in same_machine.FACTS else name


def fact_text(name: str, value: Any) -> str:
    """The value of a fact of a machine in words; that of a fact of GPUs says what it is, too."""
    if isinstance(value, tuple):
        return _counted(value) if name == "gpus.name" else ", ".join(dict.fromkeys(_of_gpus(name, value)))
    if isinstance(value, bool):
        yes, no = (t("between all"), t("not between all")) if name == "peer_to_peer" else (t("yes"), t("no"))
        return yes if value else no
    if isinstance(value, dict):
        value = [f"{key} {each}" for key, each in value.items()]
    if isinstance(value, list):
        return ", ".join(map(str, value)) or t("none")
    return f"{value:.10g}" if isinstance(value, float) else t("none") if value is None else str(value)


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{count} × {name}" for name, count in sorted(Counter(names).items()))


def _of_gpus(name: str, values: Iterable[Any]) -> Iterator[str]:
    short = name.removeprefix("gpus.")
    for value in values:
        if value is not None:
            text = (
                t(_ENABLED[value])
                if isinstance(value, bool)
                else f"{value:.10g}"
                if isinstance(value, float)
                else value
            )
            yield t(_GPU_WORDS[short], value=text) if short in _GPU_WORDS else f"{short} {text}"


def _reach(record: MachineRecord) -> str | None:
    """Which GPUs read each other's memory, in words; None where nothing is known."""
    of_all = record.reach(len(record.gpus or ()))
    pairs = [
        "–".join(map(str, link.gpus)) + (" (NVLink)" if link.nvlink else "")
        for link in record.links or ()
        if link.peer_to_peer
    ]
    if of_all is None:
        return None
    if of_all:
        return t("between all")
    return t("only between {pairs}", pairs=", ".join(pairs)) if pairs else t("not between all")


def _gpu(gpu: GpuRecord) -> Iterator[str]:
    """The known facts of a GPU beside its name, in words."""
    known = dict(gpu)
    for name in dict.fromkeys((*_GPU_WORDS, *known)):
        if name != "name":
            yield from _of_gpus(name, [known[name]])
