"""What results carry about the code that made them."""

import hashlib
from pathlib import Path

from tsuishi.base.checkout import Checkout
from tsuishi.environments.provenance import workload_record


def test_a_workload_is_known_by_every_file_it_can_import(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"1")
    before = workload_record(tmp_path, "a")
    assert before.content() == {"workload": "a", "files": {"a.py": hashlib.sha256(b"1").hexdigest()}}
    (tmp_path / "b.py").write_bytes(b"2")
    assert workload_record(tmp_path, "a") != before
    shipped = workload_record(Checkout().workloads, "conv2d").files or {}
    assert {"run.py", "experiments/conv2d.py", "common/events.py", "frameworks/torch/networks.py"} <= set(shipped)
