"""Reading a run's files: the short way for what is plain, the careful one for all else, and they agree."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuishi.analysis import reading
from tsuishi.analysis.reading import Parts, read_visible, visible
from tsuishi.errors import UserError

HEAD = "phase,index,steps,images,seconds\n"


def samples(tmp_path: Path, *texts: str | bytes) -> pd.DataFrame:
    """The table of trials 0, 1, … whose parts have these texts."""
    parts = Parts("samples")
    for number, text in enumerate(texts):
        folder = tmp_path / str(number)
        folder.mkdir(parents=True)
        (folder / "samples.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
        parts.add(number, folder)
    return parts.frame()


def test_rows_have_their_trials_number_in_front(tmp_path: Path) -> None:
    found = samples(tmp_path, f"{HEAD}measure,0,1,2,0.5\nmeasure,1,1,2,0.25\n", HEAD, f"{HEAD}epoch,0,3,4,1e-3\n")
    assert found["trial"].tolist() == [0, 0, 2]
    assert found["phase"].tolist() == ["measure", "measure", "epoch"]
    assert found["seconds"].tolist() == [0.5, 0.25, 0.001]


def test_a_trial_without_a_part_has_no_rows(tmp_path: Path) -> None:
    parts = Parts("samples")
    parts.add(0, tmp_path)
    assert parts.frame().empty


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        pytest.param(HEAD + '"a,b",0,1,2,0.5\n', "a,b", id="quoted"),
        pytest.param(HEAD + '"a\nb",0,1,2,0.5\n', "a\nb", id="a line's end in a cell"),
        pytest.param(HEAD + "a\x00b\u202e,0,1,2,0.5\n", "a⟨U+0000⟩b⟨U+202E⟩", id="unprintable"),
        pytest.param((HEAD + "a").encode() + b"\xff,0,1,2,0.5\n", "a\ufffd", id="not UTF-8"),
        pytest.param("images,more,steps,phase,index,seconds\n2,x,1,a,0,0.5\n", "a", id="other columns"),
        pytest.param(HEAD + "NA,0,1,2,0.5\n", "NA", id="a word that pandas takes for nothing"),
        pytest.param(HEAD + "a,0,1,2,0.5", "a", id="no last line's end"),
        pytest.param(HEAD + "\na,0,1,2,0.5\n", "a", id="an empty line"),
    ],
)
def test_odd_parts_are_read_with_care_and_do_not_disturb_their_neighbours(
    tmp_path: Path, text: str | bytes, phase: str
) -> None:
    plain = f"{HEAD}measure,0,1,2,0.5\n"
    found = samples(tmp_path, plain, text, plain)
    assert found["phase"].tolist() == ["measure", phase, "measure"]
    assert found["trial"].tolist() == [0, 1, 2]
    assert found["images"].tolist() == [2, 2, 2]


def test_a_row_that_was_cut_off_lacks_its_last_values(tmp_path: Path) -> None:
    found = samples(tmp_path, f"{HEAD}measure,0,1,2,0.5\nmeasure,1,1\n")
    assert found["steps"].tolist() == [1, 1]
    assert found["images"].isna().tolist() == [False, True]


def test_a_row_with_too_many_values_loses_them(tmp_path: Path) -> None:
    assert samples(tmp_path, f"{HEAD}measure,0,1,2,0.5,more\n")["seconds"].tolist() == [0.5]


@pytest.mark.parametrize(("row", "column"), [("measure,0,1,2,fast", "seconds"), ("measure,0,1.5,2,1.0", "steps")])
def test_a_value_of_the_wrong_type_is_named(tmp_path: Path, row: str, column: str) -> None:
    with pytest.raises(UserError, match=f"samples: column '{column}' should be of type"):
        samples(tmp_path, f"{HEAD}{row}\n")


@given(st.lists(st.tuples(st.text(), st.integers(0, 10**9), st.floats(1e-9, 1e9)), max_size=5))
def test_whatever_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int, float]]
) -> None:
    folder = tmp_path_factory.mktemp("trial")
    with (folder / "samples.csv").open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD.strip().split(","))
        writer.writerows((phase.replace("\r", ""), 0, steps, 1, seconds) for phase, steps, seconds in rows)
    parts = Parts("samples")
    parts.add(7, folder)
    found = parts.frame()
    assert found["steps"].tolist() == [steps for _, steps, _ in rows]
    assert found["seconds"].tolist() == [seconds for *_, seconds in rows]


@given(st.recursive(st.text() | st.integers(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_plain_json_is_known_without_a_walk_and_the_rest_is_made_visible(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    path = tmp_path_factory.mktemp("json") / "value.json"
    for ensure_ascii in (True, False):
        text = json.dumps({"key": value}, ensure_ascii=ensure_ascii)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        assert read_visible(path) == visible({"key": value})


def test_a_file_that_is_no_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    path.write_text("[]")
    with pytest.raises(UserError, match="expected a JSON object"):
        reading.read_visible(path)
