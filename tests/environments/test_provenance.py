"""What results carry about machine, environment and code, and what they must not carry."""

import getpass
import hashlib
import json
import platform
import socket
from pathlib import Path

import pytest

from tests.run.test_sampler import NoGpus
from tsuishi.base.checkout import Rooms
from tsuishi.environments.provenance import machine_record, workload_record


def test_a_machine_is_described_without_naming_it_or_its_user() -> None:
    record = machine_record(NoGpus())
    assert record["cpu"]["logical"] >= record["cpu"]["usable"] >= 1
    assert record["memory_mib"] > 100
    assert record["gpus"] == []
    assert record["driver"] is None
    words = json.dumps(record)
    for secret in (socket.gethostname(), str(Path.home()), f'"{getpass.getuser()}"'):
        assert secret not in words
    assert machine_record(NoGpus()) == record, "or every run would be on another machine"


def test_a_system_that_does_not_say_its_name_is_described_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> dict[str, str]:
        raise OSError("Unable to read files /etc/os-release, /usr/lib/os-release")

    monkeypatch.setattr(platform, "freedesktop_os_release", nothing)
    assert machine_record(NoGpus())["os"] == platform.system()


def test_a_workload_is_known_by_every_file_it_can_import(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"1")
    before = workload_record(tmp_path, "a")
    assert before == {"workload": "a", "files": {"a.py": hashlib.sha256(b"1").hexdigest()}}
    (tmp_path / "b.py").write_bytes(b"2")
    assert workload_record(tmp_path, "a") != before
    shipped = workload_record(Rooms().workloads, "conv2d")["files"]
    assert {"run.py", "experiments/conv2d.py", "common/events.py", "frameworks/torch/networks.py"} <= set(shipped)
