"""What a machine's record says, and what it must not say."""

import getpass
import json
import platform
import socket
from pathlib import Path

import pytest

from tests.machine.test_compatibility import Machine
from tests.run.test_sampler import NoGpus
from tsuishi.machine.description import cpu_settings, machine_line, machine_record, power_supply, preloaded


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


def test_preloaded_libraries_are_named_without_their_folders(tmp_path: Path) -> None:
    library = tmp_path / "home" / "libmine.so.2"
    library.parent.mkdir()
    library.write_bytes(b"abc")
    preload = tmp_path / "ld.so.preload"
    preload.write_text(f"{library}:/nowhere/libgone.so\n")
    assert preloaded(preload) == {"libmine.so.2": "ba7816bf8f01", "libgone.so": "unreadable"}
    assert preloaded(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("supplies", "power"),
    [
        ({}, None),
        ({"AC": {"type": "Mains", "online": "1"}, "BAT0": {"type": "Battery", "status": "Full"}}, "AC"),
        ({"AC": {"type": "Mains", "online": "0"}, "BAT0": {"type": "Battery", "status": "Discharging"}}, "battery"),
        ({"BAT0": {"type": "Battery", "status": "Discharging"}}, "battery"),
        ({"mouse": {"type": "Battery", "status": "Discharging", "scope": "Device"}}, None),
    ],
)
def test_a_laptop_says_whether_it_is_plugged_in(
    tmp_path: Path, supplies: dict[str, dict[str, str]], power: str | None
) -> None:
    for name, files in supplies.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(f"{text}\n")
    assert power_supply(tmp_path) == power


def test_every_core_is_asked_for_its_governor_and_limits(tmp_path: Path) -> None:
    def core(number: int, governor: str, most_khz: int) -> None:
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("governor", governor), ("max_freq", most_khz), ("min_freq", 800_000)):
            (folder / f"scaling_{name}").write_text(f"{text}\n")

    core(0, "performance", 4_700_000)
    core(1, "performance", 4_700_000)
    alike = cpu_settings(tmp_path)
    assert (alike["governor"], alike["max_mhz"], alike["min_mhz"]) == ("performance", 4700, 800)
    core(1, "powersave", 2_000_000)
    mixed = cpu_settings(tmp_path)
    assert (mixed["governor"], mixed["max_mhz"], mixed["min_mhz"]) == (["performance", "powersave"], [2000, 4700], 800)
    assert cpu_settings(tmp_path / "none")["governor"] is None


@pytest.mark.parametrize(
    ("load", "said"), [(0.1, ""), (9.0, "; load of the last minute 9.0: other programs make times longer")]
)
def test_a_line_says_the_cards_and_whether_other_programs_compute(
    monkeypatch: pytest.MonkeyPatch, load: float, said: str
) -> None:
    monkeypatch.setattr("psutil.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    assert machine_line(Machine("GeForce RTX 4090")).endswith(f", 2 logical cores, 1 x NVIDIA GeForce RTX 4090{said}")
    assert machine_line(NoGpus()).endswith(f", 2 logical cores, no NVIDIA GPU{said}")
