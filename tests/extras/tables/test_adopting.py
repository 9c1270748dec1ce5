"""`invoke adopt` as a user calls it: what it writes, that the suite can be planned, and what it refuses."""

import functools
import shutil
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.base.test_printable import on_a_terminal
from tests.commands.test_tasks import REAL, checkout, invoke
from tsuishi.specs.source import read_source
from tsuishi.specs.vocabulary import vocabulary

MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person\n"
TABLE = """model,batch_size,fp32 img/s,amp img/s
cnn10,64,"1,200.5",2300
resnet50,64,300,OOM
xcit_large_24,64,20,30
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with all suites, and the environments' files."""
    made = checkout(tmp_path / "checkout", "ok")
    for folder in ("suites", "images"):
        shutil.rmtree(made / folder)
        shutil.copytree(REAL.root / folder, made / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return made


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server that gives the files of a folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *given: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def theirs(tmp_path: Path, licence: str = MIT) -> Path:
    folder = tmp_path / "theirs"
    (folder / "results").mkdir(parents=True)
    (folder / "results" / "bench-train-rtx3090.csv").write_text(TABLE)
    if licence:
        (folder / "LICENSE").write_text(licence)
    return folder


def test_a_table_from_an_address_becomes_a_source_and_a_suite(tmp_path: Path, root: Path) -> None:
    with served(theirs(tmp_path)) as address:
        given = f"{address}/results/bench-train-rtx3090.csv"
        shown = invoke(root, "adopt", given, "--source", "bench", "--plan")
        assert shown.returncode == 0, shown.stdout + shown.stderr
        assert not (root / "reports" / "published" / "bench").exists()
        done = invoke(root, "adopt", given, "--source", "bench", "--framework", "torch")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 6 numbers are cases here" in done.stdout
    assert "written: reports/published/bench: 3 numbers of cases" in done.stdout
    assert "written: suites/bench.toml: 3 cases" in done.stdout
    folder = root / "reports" / "published" / "bench"
    assert (folder / "bench-train-rtx3090.csv").read_text() == TABLE
    assert (folder / "LICENSE").read_text() == MIT
    written = tomllib.loads((folder / "source.toml").read_text())
    assert written["tables"][0]["address"] == given
    assert written["notes"] == ["the licence of its tables: MIT"]
    groups = tomllib.loads((root / "suites" / "bench.toml").read_text())["groups"]
    expected = {tuple(group["axes"]["model"]): group["expect"]["quick"]["s_per_image"] for group in groups}
    # 13 steps of 3 passes of 2 operations a multiply-add, at 60e9 operations a second.
    assert expected == {("cnn10", "resnet50"): 5.316, ("cnn10",): 0.346}
    source = read_source(folder / "source.toml", vocabulary(root / "suites"))
    found = {(each.axes["model"], each.axes["precision"]): each.value for each in source.flat()}
    assert found == {("cnn10", "fp32"): 1200.5, ("cnn10", "amp_fp16"): 2300.0, ("resnet50", "fp32"): 300.0}
    listed = invoke(root, "list", "--sources")
    assert "GeForce RTX 3090" in listed.stdout
    planned = invoke(root, "run-suite", "--plan", "--suite", "bench", "--env", "torch2-cpu", "--engine", "venv")
    assert planned.returncode == 0, planned.stdout + planned.stderr


@pytest.mark.long
def test_what_is_cut_says_how_to_see_the_rest(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "train-fp32-rtx3090.csv"
    fast, unknown = (
        (f"resnet50,{batch},{batch}00000\n" for batch in range(1, 15)),
        (f"xcit_{n},8,3\n" for n in range(6)),
    )
    path.write_text("".join(["model,batch_size,img/s\n", *fast, *unknown]))
    cut, whole = (
        invoke(root, "adopt", str(path), "--source", "many", "--plan", *more).stdout for more in ((), ["--all"])
    )
    assert "xcit_3 and 2 more (--all shows them)" in cut
    assert "and 2 more rows: --all shows them" in cut
    assert cut.count("TFLOP/s") == 12
    assert "xcit_4, xcit_5" in whole
    assert "--all" not in whole
    assert whole.count("TFLOP/s") == 14
    invoke(root, "adopt", str(path), "--source", "many")
    cut, whole = (invoke(root, "list", "--sources", *more).stdout for more in ((), ["--all"]))
    assert "and 2 more rows: --all shows them" in cut
    assert (cut.count("TFLOP/s"), whole.count("TFLOP/s")) == (12, 14)


@pytest.mark.long
def test_without_a_licence_only_the_numbers_in_use_are_kept(tmp_path: Path, root: Path) -> None:
    table = theirs(tmp_path, licence="") / "results" / "bench-train-rtx3090.csv"
    done = invoke(root, "adopt", str(table), "--source", "bench")
    assert done.returncode == 0, done.stdout + done.stderr
    folder = root / "reports" / "published" / "bench"
    (kept,) = folder.glob("*.csv")
    assert kept.read_text() == 'model,batch_size,fp32 img/s,amp img/s\ncnn10,64,"1,200.5",2300\nresnet50,64,300,OOM\n'
    assert not (folder / "LICENSE").exists()
    assert tomllib.loads((folder / "source.toml").read_text())["tables"][0]["original"]
    assert len(list(read_source(folder / "source.toml", vocabulary(root / "suites")).flat())) == 3


@pytest.mark.long
def test_an_altered_table_is_refused_and_a_corrected_map_is_read_again(tmp_path: Path, root: Path) -> None:
    invoke(
        root,
        "adopt",
        str(theirs(tmp_path) / "results"),
        "--source",
        "bench",
        "--licence",
        str(tmp_path / "theirs" / "LICENSE"),
    )
    folder = root / "reports" / "published" / "bench"
    map_, table = folder / "source.toml", folder / "bench-train-rtx3090.csv"
    map_.write_text(
        map_.read_text().replace("[[hardware]]", '[values.model]\nxcit_large_24 = "wrn28_10"\n\n[[hardware]]', 1)
    )
    corrected = invoke(root, "list", "--sources")
    assert corrected.returncode == 0, corrected.stderr
    assert len(list(read_source(map_, vocabulary(root / "suites")).flat())) == 5
    table.write_text(TABLE.replace("300", "301"))
    altered = invoke(root, "list", "--sources")
    assert altered.returncode == 0  # other sources are listed
    assert "left out: " in altered.stderr
    assert "bench-train-rtx3090.csv: its SHA-256 is" in altered.stderr


@pytest.mark.long
def test_networks_of_a_library_are_cases_by_its_name_and_other_images_are_another_axis(
    tmp_path: Path, root: Path
) -> None:
    """Columns and names are those of timm's results; the numbers are made up, and a network is of no library."""
    path = tmp_path / "infer-fp32-nchw-pt240-cpu-i9_10940x-dynamo.csv"
    path.write_text(
        "model,infer_samples_per_sec,infer_step_time,infer_batch_size,infer_img_size,param_count\n"
        "tinynet_e,72737.62,14.068,1024,106,2.04\nresnet18,50.0,20.0,1,224,11.69\nresnet18,80.0,12.5,1,160,11.69\n"
        "mobilenetv3_small_050,68822.27,14.868,1024,224,1.59\nlcnet_035,60018.2,17.061,1024,224,1.64\n"
        "lcnet_050,49911.06,20.506,1024,224,1.88\nlevit_128s,41736.48,24.525,1024,224,7.76\nvit_of_mine,1,1000,1,224,5\n"
    )
    result = invoke(root, "adopt", str(path), "--source", "timm")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 of 8 cells are networks here, 5 more of timm 1.0.31" in result.stdout
    assert "14 of 16 numbers are cases here" in result.stdout
    assert "vit_of_mine (none in timm 1.0.31)" in result.stdout
    suite = tomllib.loads((root / "suites" / "timm.toml").read_text())
    found = {(name, group["axes"].get("image_size")) for group in suite["groups"] for name in group["axes"]["model"]}
    assert {("resnet18", None), ("resnet18", 160), ("timm:tinynet_e", 106), ("timm:lcnet_035", 224)} <= found
    again = invoke(root, "adopt", str(path), "--source", "keras", "--framework", "tensorflow", "--plan")
    assert "4 of 16 numbers are cases here" in again.stdout
    planned = invoke(root, "run-suite", "--suite", "timm", "--env", "torch2-timm-cpu", "--engine", "venv", "--plan")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert planned.stdout.count("timm, case") == 6, planned.stdout
    assert "as time is left: 1 further question" in planned.stdout


@pytest.mark.long
def test_proposed_claims_and_questions_are_shown_written_and_read_again(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "infer-fp32-cpu-i9.csv"
    gains = {"resnet18": 90, "resnet34": 130, "resnet50": 140, "resnet101": 130, "resnet152": 140, "vgg16": 130}
    rows = (f"{name},1,100,{rate}\n" for name, rate in gains.items())
    path.write_text("model,bs,NCHW img/s,NHWC img/s\n" + "".join(rows))
    claim = "a: On a CPU, the images a second of resnet34 and resnet50 are at least 1.14 times as many with layout"
    shown = invoke(root, "adopt", str(path), "--framework", "torch", "--source", "claimed", "--plan")
    assert claim in shown.stdout, shown.stdout + shown.stderr
    assert "corrected or removed by hand in source.toml" in shown.stdout
    done = invoke(root, "adopt", str(path), "--framework", "torch", "--source", "claimed")
    assert done.returncode == 0, done.stderr
    listed = invoke(root, "list", "--sources")
    assert listed.returncode == 0, listed.stderr
    planned = invoke(root, "run-suite", "--suite", "claimed", "--env", "torch2-cpu", "--engine", "venv", "--plan")
    assert planned.returncode == 0, planned.stderr
    assert "layout channels_last against layout channels_first" in planned.stdout
    assert "claimed a" in planned.stdout


@pytest.mark.long
def test_cases_are_asked_for_where_the_comparison_of_a_table_takes_too_long(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "infer-fp32-rtx3090.csv"
    path.write_text("model,bs,NCHW img/s,NHWC img/s\nresnet18,1024,100,120\nresnet18,1,100,\n")
    invoke(root, "adopt", str(path), "--framework", "torch", "--source", "costly")
    assert "[[questions]]" in (root / "suites" / "costly.toml").read_text()
    given = ("--suite", "costly", "--env", "torch2-cpu", "--engine", "venv", "--within", "10m", "--plan")
    planned = invoke(root, "run-suite", *given)
    assert planned.returncode == 0, planned.stderr
    assert "costly, case" in planned.stdout


@pytest.mark.long
def test_a_person_at_a_terminal_is_asked_and_gets_the_options_that_say_the_same(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "## Scoring\n\n| Batch | VGG 16 |\n|--|--|\n| 8 | 205 |\n\n## Training\n\n| VGG 16 |\n|--|\n| 35 |\n"
    )
    told = on_a_terminal(tmp_path, "adopt", str(page), "--plan", typed=b"1\n1\n16\n")
    assert "tables 1, 2: what are the numbers whose headers are networks, cards or settings?" in told
    assert "table 2: which batch size? (1 numbers)" in told
    assert "the same without questions: --set 2:batch_size=16 --columns all=images/s" in told
    assert "2 of 2 numbers are cases here" in told
    left = on_a_terminal(tmp_path, "adopt", str(page), "--plan", typed=b"9\n")
    assert "0 of 2 numbers are cases here" in left
    assert "the same without questions" not in left
    given = on_a_terminal(
        tmp_path, "adopt", str(page), "--plan", "--columns", "all=images/s", "--set", "2:batch_size=16", typed=b"\n"
    )
    assert "2 of 2 numbers are cases here" in given
    asked = on_a_terminal(tmp_path, "check", str(page), "--row", "35", "--plan", typed=b"1\n1\n16\n")
    assert "table 2: which batch size?" in asked
    assert "table 1" not in asked


def test_mistakes_are_one_line(tmp_path: Path, root: Path) -> None:
    folder = theirs(tmp_path)
    table = str(folder / "results" / "bench-train-rtx3090.csv")
    (folder / "other.csv").write_text("model,ms\nxcit,3\n")
    (folder / "broken.json").write_text("{")
    with served(folder) as address:
        for given, message in (
            ((table, "--set", "modle=x"), "--set: unknown axis 'modle'"),
            ((table, "--set", "precision=fp31"), "--set: key 'precision'"),
            ((table, "--columns", "x"), "--columns: write name=value, separated by commas; given: x"),
            ((table, "--source", "conv2d"), "conv2d.toml: there already"),
            ((str(folder / "none.csv"),), "none.csv: no such file"),
            ((str(folder / "other.csv"), "--set", "batch_size=1"), "no number is a case here: nothing is written"),
            ((str(folder / "broken.json"),), "broken.json: "),
            ((f"{address}/none.csv",), "none.csv: "),
        ):
            refused = invoke(root, "adopt", *given)
            assert refused.returncode == 1, (given, refused.stdout)
            assert message in refused.stderr, given
            assert len(refused.stderr.splitlines()) == 1, refused.stderr
