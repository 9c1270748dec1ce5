"""What a machine's record says, and what it must not say."""

import getpass
import json
import platform
import socket
from pathlib import Path

import pytest

from tests.run.test_sampler import NoGpus
from tsuishi.machine.description import machine_record


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
