"""The books of a run."""

from pathlib import Path

import pytest

from tests.run.test_rounds import Bench
from tsuishi.results import manifest
from tsuishi.run.ledger import Ledger


def test_what_more_time_would_bring_has_its_digest_though_it_is_written_after_all_else(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=60.0, scatter=0.5)
    rounds = bench.rounds([bench.compare("the same", of=1.0, to=1.02)])
    bench.go(rounds)
    manifest.write_anew(bench.run.path, ["run.json"])
    before = manifest.about(bench.run.path / "run.json")
    Ledger(bench.run).end(rounds, 0.0)
    (more,) = bench.run.run().more
    assert more.title["en"] == "the same"
    Ledger(bench.run).end(rounds, 45.0)
    assert bench.run.run().more[0].seconds == pytest.approx(more.seconds + 45.0), "another call takes time of its own"
    now = manifest.about(bench.run.path / "run.json")
    assert now != before
    assert manifest.read(bench.run.path).anew["run.json"] == now.sha256
