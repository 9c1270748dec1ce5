"""The books of a run."""

from pathlib import Path

import pytest

from tests.run.test_rounds import Bench
from tsuishi.results import hash_chain
from tsuishi.run.ledger import Ledger


def test_what_more_time_would_bring_is_chained_though_it_is_written_after_all_else(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=60.0, scatter=0.5)
    rounds = bench.rounds([bench.compare("the same", of=1.0, to=1.02)])
    bench.go(rounds)
    chained = hash_chain.HashChain(bench.run.path)
    chained.add(["run.json"])
    before = hash_chain.about(bench.run.path / "run.json")
    Ledger(bench.run).end(rounds, 0.0)
    (more,) = bench.run.run().more
    assert more.title["en"] == "the same"
    Ledger(bench.run).end(rounds, 45.0)
    assert bench.run.run().more[0].seconds == pytest.approx(more.seconds + 45.0), "another call takes time of its own"
    now = hash_chain.about(bench.run.path / "run.json")
    assert now != before
    assert hash_chain.read(bench.run.path).last == {"run.json": now}
