"""The kit for a first GPU, step 1: what is compared with nvidia-smi, each comparison shown to fail by a fault."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import machine, telemetry
from benchmarks.gpu.findings import FAIL, NOT_HERE, PASS, on_a_cpu, within
from benchmarks.gpu.telemetry import Series
from tests.benchmarks.found import GPU, failed, outcome

SMI = {
    "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-1",
    "compute_cap": "9.0",
    "memory.total": "81559",
    "power.limit": "700.00",
    "clocks.max.sm": "1980",
    "clocks.max.memory": "2619",
    "pcie.link.width.max": "16",
    "persistence_mode": "Enabled",
    "ecc.mode.current": "Enabled",
    "display_active": "Disabled",
    "driver_version": "580.65.06",
}


def test_a_line_ends_with_what_came_of_it_and_a_fail_has_both_figures() -> None:
    assert within("speed", 3.0, 1.0, 4.0, unit="m/s").text == "speed: 3 m/s, at least 1 and at most 4: pass"
    assert within("speed", 0.5, 1.0).text == "speed: FAIL: 0.5, at least 1"
    assert within("speed", None, 1.0).text == "speed: FAIL: no value, at least 1"
    assert within("speed", float("nan"), 1.0).outcome == FAIL


def test_a_cpu_in_the_place_of_a_gpu_is_not_judged_by_its_speed() -> None:
    slow = within("speed", 0.5, 1.0, of_speed=True)
    assert on_a_cpu(slow).text == "speed: not here: --dry judges no speed: 0.5, at least 1"
    wrong = within("error", 0.5, 0.0, 0.1)
    assert on_a_cpu(wrong) is wrong


@pytest.mark.parametrize(
    ("record", "accelerator", "expected", "words"),
    [
        ({"versions": {"torch": "2.13.0"}, "cuda": "13.0", "cuda_usable": True}, "cuda", PASS, "CUDA usable"),
        ({"versions": {"torch": "2.13.0"}, "cuda": "13.0"}, "cuda", FAIL, "no CUDA; expected CUDA usable"),
        ({"versions": {"torch": "2.13.0+cpu"}}, "cpu", PASS, "expected any PyTorch"),
        ({"versions": {"numpy": "2"}}, "cpu", FAIL, "none in /a/python, expected a PyTorch"),
    ],
)
def test_an_interpreter_must_use_the_device(record: Any, accelerator: str, expected: str, words: str) -> None:
    assert outcome(machine.interpreter(record, accelerator, "/a/python"), words) == expected


def test_doctor_must_say_that_the_interpreter_computes_on_the_device() -> None:
    said = "ok      environment tf2-cpu: would compute on the CPU\nok      environment host: would compute on the GPU\n"
    assert machine.doctors_answer(said, "cuda").outcome == PASS
    assert outcome(machine.doctors_answer(said, "cpu"), "would compute on the CPU'") == FAIL
    assert outcome(machine.doctors_answer("", "cuda"), "no line of the interpreter") == FAIL


def test_nvml_and_nvidia_smi_must_say_the_same() -> None:
    assert set(SMI) == set(machine.FIELDS)
    assert {finding.outcome for finding in machine.against_smi(GPU, SMI)} == {PASS}


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("uuid", "GPU-2", "NVML against nvidia-smi, uuid: FAIL: NVML GPU-1, nvidia-smi GPU-2"),
        ("driver_version", "470.1", "NVML against nvidia-smi, driver: FAIL: NVML 580.65.06, nvidia-smi 470.1"),
        ("ecc.mode.current", "Disabled", "NVML against nvidia-smi, ecc: FAIL: NVML True, nvidia-smi False"),
        (
            "power.limit",
            "350.00",
            "NVML against nvidia-smi, power_limit_w: FAIL: 700, at least 349.6 and at most 350.3; nvidia-smi 350.00",
        ),
    ],
)
def test_a_field_that_differs_is_a_fail_with_both_values(field: str, value: str, text: str) -> None:
    assert failed(machine.against_smi(GPU, {**SMI, field: value})) == [text]


def test_what_nvidia_smi_does_not_say_is_not_here() -> None:
    found = {finding.outcome for finding in machine.against_smi(GPU, {**SMI, "clocks.max.sm": "[N/A]"})}
    assert found == {PASS, NOT_HERE}


@pytest.mark.parametrize(
    ("printed", "code", "why_not"),
    [
        (", ".join(SMI[field] for field in machine.FIELDS), 0, ""),
        ("No devices were found", 6, "nvidia-smi ended with 6: No devices were found"),
        ("a, b", 0, "nvidia-smi ended with 0: a, b"),
    ],
)
def test_the_answer_of_nvidia_smi_is_read_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, code: int, why_not: str
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncase \"$*\" in *--id=GPU-1*) echo '{printed}' ;; esac\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert machine.smi("GPU-1") == ({} if why_not else SMI, why_not)


def rows(power_w: float = 300.0, energy_w: float | None = 300.0, used: float = 99.0) -> list[dict[str, str]]:
    """Ten seconds of telemetry at 10 Hz, of a GPU at constant power; energy_w: by its counter."""
    return [
        {
            "elapsed_s": str(tick / 10),
            "utilisation_percent": str(used),
            "power_w": str(power_w),
            "energy_j": "" if energy_w is None else str(1e6 + energy_w * tick / 10),
            "device": "gpu0",
        }
        for tick in range(101)
    ]


def test_telemetry_must_have_ten_rows_a_second() -> None:
    assert telemetry.pace([tick / 10 for tick in range(50)]).outcome == PASS
    assert outcome(telemetry.pace([tick / 5 for tick in range(50)]), "5, at least 9 and at most 11") == FAIL
    assert telemetry.pace([]).outcome == FAIL


def log(power_w: float) -> dict[str, Series]:
    moments = [1000 + tick / 10 for tick in range(101)]
    # The beginning, in which the load starts, is not compared.
    rising = [0.0 if tick < 20 else power_w for tick in range(101)]
    return {"power_w": Series(moments, rising), "utilisation_percent": Series(moments, [95.0] * 101)}


def test_telemetry_must_agree_with_the_other_log_under_load() -> None:
    assert failed(telemetry.against_log(rows(), 1000.0, log(305.0), 1004.0, 1010.0)) == []
    (text,) = failed(telemetry.against_log(rows(), 1000.0, log(400.0), 1004.0, 1010.0))
    assert text == (
        "telemetry against the other log, power_w: FAIL: 300, at least 380 and at most 420; the other log 400"
    )
    (text,) = failed(telemetry.against_log(rows(used=20.0), 1000.0, log(300.0), 1004.0, 1010.0))
    assert "utilisation_percent: FAIL: 20, at least 85" in text
    found = telemetry.against_log(rows(), 1000.0, log(300.0), 2000.0, 2001.0)
    assert {finding.outcome for finding in found} == {NOT_HERE}


def test_the_other_log_is_read_up_to_its_cut_off_row(tmp_path: Path) -> None:
    path = tmp_path / "nvidia-smi.csv"
    day = "2026/11/24 08:00:00"
    path.write_text(f"{day}.000, 10, 300.5\n{day}.100, [N/A], 1\n{day}.200, 30, 301.5\n2026/1")
    found = telemetry.read_log(path, ("utilisation_percent", "power_w"))
    assert found["utilisation_percent"].values == [10.0, 30.0]
    assert found["power_w"].values == [300.5, 301.5]
    first, second = found["power_w"].moments
    assert second - first == pytest.approx(0.2)


def test_the_energy_counter_must_agree_with_the_integral_of_power() -> None:
    assert telemetry.energies(rows(), 2.0, 9.0).outcome == PASS
    wrong = telemetry.energies(rows(energy_w=600.0), 2.0, 9.0)
    assert outcome(wrong, "2, at least 0.9 and at most 1.1; 4200.0 J counted, 2100.0 J integrated") == FAIL
    assert telemetry.energies(rows(energy_w=None), 2.0, 9.0).outcome == NOT_HERE
