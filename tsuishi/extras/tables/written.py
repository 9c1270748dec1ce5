"""The files of an adopted source: source.toml with the map, the tables, their licence, and the suite of its cases."""

import csv
import hashlib
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import AoT, InlineTable

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.extras.tables.adoption import STEADY, WORKLOAD, AdoptedTable, Adoption
from tsuishi.extras.tables.printed_pairs import proposed_questions
from tsuishi.specs.case import BATCH_SIZE, MODEL, Value
from tsuishi.specs.grids import PERCENTILES, UPLOADS
from tsuishi.specs.printed_table import PrintedTable
from tsuishi.specs.source import FILE, Source, read_source
from tsuishi.specs.suite import Suite, read_suite
from tsuishi.specs.vocabulary import Vocabulary

LICENCE = "LICENSE"
_TIMING = {"warm_up_steps": 5, "warm_up_s": 1.0, "block_s": 0.2, "min_blocks": 8, "measure_s": 4.0, "max_s": 8.0}
_PROFILES: dict[str, dict[str, Any]] = {
    "smoke": {"settings": {**_TIMING, "warm_up_steps": 3, "min_blocks": 3, "measure_s": 0.3}},
    "quick": {
        "timeout_s": 900.0,
        "settings": {**_TIMING, "measure_s": 2.0},
        "settings_on_cuda": {
            **_TIMING,
            **{"warm_up_s": 0.5, "settle_s": 0.75, "block_s": 0.15, "measure_s": 1.5, "max_s": 6.0},
        },
    },
    "full": {
        "repetitions": {"cpu": 3, "cuda": 3},
        "timeout_s": 86400.0,
        "settings": {
            **_TIMING,
            "warm_up_steps": 20,
            "warm_up_s": 5.0,
            "block_s": 1.0,
            "measure_s": 20.0,
            "max_s": 300.0,
        },
    },
}
# Seconds of a trial with short steps; the steps that it has at least; and the FLOP/s of two CPU cores.
_TRIAL_S, _STEPS, _FLOPS_PER_S = 10.0, 13, 60e9


def write_source(
    adoption: Adoption,
    title: str,
    folder: Path,
    suite: Path,
    words: Vocabulary,
    claims: Sequence[Mapping[str, Any]] = (),
) -> tuple[Source, Suite]:
    """Write the source with its claims into its folder, and the suite of its cases; returns them, as they are read.

    The folder must not exist. Raises UserError where the files could not be read again: then nothing is written.
    """
    with files.temporary_folder(folder.parent, f".{folder.name}-") as making:
        inside, cases = making / folder.name, making / suite.name
        inside.mkdir()
        specs = [_stored(table, inside) for table in adoption.tables if table.spec and table.reading.numbers]
        (inside / FILE).write_text(_source(adoption, title, specs, claims), encoding="utf-8")
        cases.write_text(suite_text(adoption, title, words), encoding="utf-8")
        try:
            found = read_source(inside / FILE, words), read_suite(cases, words)
        except UserError as error:
            raise UserError(f"nothing is written: {str(error).replace(f'{making}/', '')}: correct the table") from error
        inside.rename(folder)
        with files.replacing(suite) as writing:
            writing.write(cases.read_text(encoding="utf-8"))
    return found


def _named(folder: Path, name: str, content: bytes) -> str:
    """Write a file under its name, or under a name like it where the name is that of another file; returns the name."""
    while name in (FILE, LICENCE) or ((folder / name).exists() and (folder / name).read_bytes() != content):
        name = f"table-{name}"
    (folder / name).write_bytes(content)
    return name


def _stored(table: AdoptedTable, folder: Path) -> PrintedTable:
    """The map of a table whose file is in the folder: the file as it is, or the numbers that are used alone."""
    spec, file = table.spec, table.file
    assert spec is not None
    if file.licence.name:
        (folder / LICENCE).write_text(file.licence.text, encoding="utf-8")
        return spec.model_copy(update={"file": _named(folder, file.name, file.content)})
    content = _used(table, spec).encode()
    name = _named(folder, f"{Path(file.name).stem}-{table.number}-used.csv", content)
    digest = hashlib.sha256(content).hexdigest()
    return spec.model_copy(update={"file": name, "number": 1, "original": spec.sha256, "sha256": digest})


def _used(table: AdoptedTable, spec: PrintedTable) -> str:
    """The rows and columns of a table whose numbers are cases here, as CSV."""
    grid = table.grid
    numbers = {(number.row, number.column) for number in table.reading.numbers}
    listed = {column.name for column in spec.columns if not table.proposed.is_quantity(column)}
    names = [
        name
        for name in grid.header
        if name in {*listed, UPLOADS, PERCENTILES} or any((row, name) in numbers for row in range(len(grid.rows)))
    ]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(names)
    for index in sorted({row for row, _ in numbers}):
        lines.writerow([grid.rows[index][grid.header.index(name)] for name in names])
    return text.getvalue()


def _inline(values: Mapping[str, Any]) -> InlineTable:
    table = tomlkit.inline_table()
    table.update(values)
    return table


def _tables(tables: Iterable[Mapping[str, Any]]) -> AoT:
    """Tables of an array, as [[questions]]; what they hold is on one line, but for [[claims.checks]]."""
    made = tomlkit.aot()
    for each in tables:
        inner = {key: _tables(value) if key == "checks" else _line(value) for key, value in each.items()}
        made.append(tomlkit.item(inner))
    return made


def _line(value: Any) -> Any:
    if isinstance(value, dict):
        return _inline({key: _line(inner) for key, inner in value.items()})
    if isinstance(value, list):  # an array that grows value by value takes the square of their number
        return tomlkit.array(f"[{', '.join(_line(inner).as_string() for inner in value)}]")
    return tomlkit.item(value)


def _source(adoption: Adoption, title: str, specs: Iterable[PrintedTable], claims: Sequence[Mapping[str, Any]]) -> str:
    """The text of source.toml."""
    used = [table for table in adoption.tables if table.reading.numbers]
    document = tomlkit.document()
    document.add(
        tomlkit.comment("Written by `invoke adopt`. Correct the map by hand: `invoke list --sources` reads it again.")
    )
    document.add("title", tomlkit.item(title))
    document.add("language", tomlkit.item("en"))
    assumed = list(dict.fromkeys(text for table in used for text in table.assumed))
    if assumed:
        document.add("assumed", tomlkit.item([f"not said by the tables: {', '.join(assumed)}"]))
    licences = sorted({table.file.licence.name for table in used} - {""})
    note = (
        f"the licence of its tables: {', '.join(licences)}"
        if licences
        else "no licence was found: only the numbers in use are kept"
    )
    document.add("notes", tomlkit.item([note, *adoption.contradictions]))
    hardware = tomlkit.aot()
    for each in adoption.hardware():
        hardware.append(tomlkit.item({"name": each.name, "title": each.title}))
    document.add("hardware", hardware)
    values = {axis: renamed for axis, renamed in adoption.values.items() if renamed}
    if values:
        document.add("values", tomlkit.item(values))
    tables = tomlkit.aot()
    for spec in specs:
        tables.append(_table(spec))
    document.add("tables", tables)
    if claims:
        document.add("claims", _tables(claims))
    return tomlkit.dumps(document)


def _table(spec: PrintedTable) -> Any:
    given = spec.model_dump(exclude_defaults=True, exclude_none=True)
    columns, case = given.pop("columns"), given.pop("case", {})
    table = tomlkit.item(given)
    table.add("case", _inline(case))
    lines = tomlkit.array().multiline(True)
    for column in columns:
        lines.append(_inline(column))
    table.add("columns", lines)
    return table


def suite_text(adoption: Adoption, title: str, words: Vocabulary) -> str:
    """The text of the suite with every case of the source: groups of networks that share all other axes."""
    models: dict[tuple[tuple[str, Value], ...], dict[Value, None]] = defaultdict(dict)
    for axes in _cases(adoption):
        models[tuple(item for item in axes.items() if item[0] != MODEL)][axes[MODEL]] = None
    batches: dict[tuple[Any, ...], list[Value]] = defaultdict(list)
    for rest, names in models.items():
        batches[tuple(item for item in rest if item[0] != BATCH_SIZE), tuple(names)].append(dict(rest)[BATCH_SIZE])
    document = tomlkit.document()
    document.add("title", tomlkit.item(title))
    document.add("source", tomlkit.item(adoption.name))
    document.add("workload", tomlkit.item(WORKLOAD))
    document.add("default", tomlkit.item(False))
    if questions := proposed_questions(adoption, words):
        document.add("questions", _tables(questions))
    profiles = tomlkit.table(is_super_table=True)
    for name, values in _PROFILES.items():
        profile = tomlkit.table()
        for key, value in values.items():
            profile.add(key, _inline(value) if isinstance(value, dict) else tomlkit.item(value))
        profiles.add(name, profile)
    document.add("profiles", profiles)
    groups = tomlkit.aot()
    for (rest, names), sizes in batches.items():
        group = tomlkit.table()
        group.add("axes", _line({**dict([STEADY, *rest]), MODEL: list(names), BATCH_SIZE: sorted(sizes)}))
        group.add("expect", _inline(dict.fromkeys(_PROFILES, _inline(_expected(dict(rest), names, words)))))
        groups.append(group)
    document.add("groups", groups)
    return tomlkit.dumps(document)


def _expected(axes: Mapping[str, Value], names: Iterable[Value], words: Vocabulary) -> dict[str, float]:
    """The expected seconds of a trial of the largest of these networks, by its multiply-adds; a plan learns better."""
    known = [words.networks[str(name)].multiply_adds for name in names if str(name) in words.networks]
    passes = 3 if axes.get("mode") == "training" else 1
    return {"s": _TRIAL_S, "s_per_image": round(_STEPS * passes * 2 * max(known, default=0) / _FLOPS_PER_S, 3)}


def _cases(adoption: Adoption) -> list[dict[str, Value]]:
    """The cases of all numbers, each once."""
    every = [dict(sorted(number.axes.items())) for table in adoption.tables for number in table.reading.numbers]
    found = {tuple(axes.items()): axes for axes in every}  # the columns of tables have different orders
    return [axes for axes in found.values() if MODEL in axes and BATCH_SIZE in axes]
