"""Which GPU and driver run what: the rules, the shipped table, and what a person with the wrong GPU is told."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from tests.run.test_sampler import NoGpus
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.machine.compatibility import by_ptx, gpu_refusal, read_table, refusal, runs_natively
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.environment import Cuda, Environment, known_environments, read_environment

IMAGES = Checkout().images
TABLE = read_table(IMAGES)
KNOWN = {name: read_environment(path) for name, path in known_environments(IMAGES).items()}
WITH_GPU_CODE = [one for one in KNOWN.values() if one.cuda]


def gpu(name: str) -> dict[str, Any]:
    """A card of the table, as NVML would describe it."""
    (known,) = [one for one in TABLE.gpus if one.name == name]
    return {"name": f"NVIDIA {name}", "compute_capability": known.capability}


def told(card: str, driver: str, environment: str) -> str:
    return refusal(KNOWN[environment], [gpu(card)], driver, TABLE, KNOWN.values())


@pytest.mark.parametrize(
    ("card", "driver", "environment", "said"),
    [
        (
            "GeForce RTX 4090",
            "580.95.05",
            "torch1.1-cu100",
            "NVIDIA GeForce RTX 4090 is compute capability 8.9 (Ada); torch1.1-cu100 holds code for 3.5 to 7.5, and "
            "its cuDNN and cuBLAS hold no PTX: use torch1.13-cu117 or torch2-cuda; --force runs a numerical self-check "
            "first",
        ),
        (
            "H100",
            "580.95.05",
            "tf1.13-cu100",
            "NVIDIA H100 is compute capability 9.0 (Hopper); tf1.13-cu100 holds code for 3.5 to 7.0, and its cuDNN and "
            "cuBLAS hold no PTX: use tf1.15-ngc or tf2-cuda; --force runs a numerical self-check first",
        ),
        (
            "Tesla V100",
            "580.95.05",
            "torch2-cuda",
            "NVIDIA Tesla V100 is compute capability 7.0 (Volta); torch2-cuda holds code for 7.5 to 12.0: "
            "use torch1.1-cu90 or torch2.8-cu128",
        ),
        (
            "GeForce RTX 2080 Ti",
            "396.54",
            "torch1.1-cu100",
            "driver 396.54 is older than 410.48, which CUDA 10.0 of torch1.1-cu100 needs: update the driver",
        ),
        (
            "Tesla T4",
            "580.95.05",
            "torch1.1-cu90",
            "NVIDIA Tesla T4 is compute capability 7.5 (Turing); torch1.1-cu90 has CUDA 9.0: its cuBLAS fails there, "
            "and PyTorch itself asks for CUDA 10.0: use torch1.2-cu100 or torch2-cuda; --force runs a numerical "
            "self-check first",
        ),
        (
            "Tesla K80",
            "470.256.02",
            "tf2-cuda",
            "NVIDIA Tesla K80 is compute capability 3.7 (Kepler); tf2-cuda holds code for 6.0 to 9.0 and PTX "
            "for 10.0 to 12.0: use tf1.13-cu100-wheels",
        ),
    ],
)
def test_a_refusal_says_the_reason_and_the_environment_to_use_instead(
    card: str, driver: str, environment: str, said: str
) -> None:
    assert told(card, driver, environment) == said


@pytest.mark.parametrize(
    ("card", "environment"),
    [
        ("Tesla V100", "torch1.1-cu90"),
        ("GeForce RTX 2080 Ti", "torch1.2-cu100"),
        ("GeForce RTX 2080 Ti", "tf1.13-cu100"),  # native code of the same major compute capability
        ("GeForce RTX 4090", "torch2-cuda"),
        ("GeForce RTX 5090", "tf2-cuda"),
        ("A100", "tf1.15-ngc"),
    ],
)
def test_a_gpu_an_environment_holds_code_for_is_not_refused(card: str, environment: str) -> None:
    assert told(card, "580.95.05", environment) == ""


def test_native_code_runs_on_its_own_major_compute_capability_from_its_own_minor_one_up() -> None:
    cuda = Cuda(toolkit="13.0", min_driver="580.65", native=("7.5", "10.0"))
    assert [one for one in ("7.0", "7.5", "8.9", "9.0", "10.0", "10.3", "12.0") if runs_natively(cuda, one)] == [
        "7.5", "8.9", "9.0", "10.0", "10.3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("card", "environment", "said"),
    [
        (
            "GeForce RTX 5090",
            "tf2-cuda",
            "NVIDIA GeForce RTX 5090 is compute capability 12.0 (Blackwell); tf2-cuda holds code for 6.0 to 9.0 and "
            "PTX for 10.0 to 12.0, which the driver compiles",
        ),
        (
            "H100",
            "tf2.12-cu118",
            "NVIDIA H100 is compute capability 9.0 (Hopper); tf2.12-cu118 holds code for 3.5 to 7.5 and PTX for 8.0 to "
            "9.0, which the driver compiles",
        ),
        ("H100", "tf2-cuda", ""),
        ("GeForce RTX 5090", "tf2.12-cu118", ""),  # refused
        ("GeForce RTX 5090", "torch2-cuda", ""),
    ],
)
def test_code_that_is_ptx_alone_for_a_gpu_is_doubtful_and_not_refused(card: str, environment: str, said: str) -> None:
    assert by_ptx(KNOWN[environment], [gpu(card)], TABLE) == said
    assert not said or told(card, "580.95.05", environment) == ""


def test_a_driver_that_cannot_be_had_for_an_old_gpu_is_not_recommended() -> None:
    """Kepler's drivers end with 470: updating is no way out."""
    future = KNOWN["torch1.1-cu100"].model_copy(
        update={"cuda": Cuda(toolkit="11.8", min_driver="520.61.05", native=("3.5", "9.0"))}
    )
    assert refusal(future, [gpu("Tesla K80")], "470.256.02", TABLE, KNOWN.values()) == (
        "driver 470.256.02 is older than 520.61.05, which CUDA 11.8 of torch1.1-cu100 needs, and drivers for Kepler "
        "end with 470: use torch1.1-cu90 or torch2.0-cu117"
    )


def test_where_nothing_fits_the_ways_out_are_named() -> None:
    assert refusal(KNOWN["torch2-cuda"], [gpu("Tesla K80")], "470.256.02", TABLE, [KNOWN["torch2-cuda"]]) == (
        "NVIDIA Tesla K80 is compute capability 3.7 (Kepler); torch2-cuda holds code for 7.5 to 12.0: no environment "
        "here is made for it: --accelerator cpu, or --engine host with a framework that is"
    )


def test_two_kinds_of_gpus_are_both_named_and_each_once() -> None:
    cards = [gpu("A100"), gpu("A100"), gpu("Tesla V100"), gpu("GeForce RTX 4090")]
    said = refusal(KNOWN["torch1.1-cu90"], cards, "580.95.05", TABLE, KNOWN.values())
    assert said.startswith(
        "NVIDIA A100 is compute capability 8.0 (Ampere); NVIDIA GeForce RTX 4090 is compute capability 8.9 (Ada); "
    )


class Machine(NoGpus):
    """One with the cards named, which nobody uses; CUDA's driver is not there."""

    def __init__(self, *cards: str, driver: str = "580.95.05") -> None:
        super().__init__()
        self._driver = driver
        idle = {"display_active": False, "memory_mib": 32_000.0, "memory_reserved_mib": None}
        self._cards = [{"index": i, **idle, **gpu(card)} for i, card in enumerate(cards)]

    def __len__(self) -> int:
        return len(self._cards)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return tuple(Gpu(index, f"GPU-{index}") for index in range(len(self)))

    def describe(self) -> list[dict[str, Any]]:
        return self._cards

    def processes(self, index: int, *, draws: bool = False) -> dict[int, float | None]:
        return {}

    def sample(self, devices: Sequence[int] | None = None) -> list[dict[str, Any]]:
        chosen = range(len(self)) if devices is None else devices
        return [{"device": f"gpu{index}", "utilisation_percent": 0, "memory_used_mib": 0.0} for index in chosen]

    def driver(self) -> str:
        return self._driver


def test_force_tries_what_is_merely_newer_and_nothing_else() -> None:
    old, new = KNOWN["torch1.1-cu90"], KNOWN["torch2-cuda"]
    assert gpu_refusal(old, Machine("GeForce RTX 4090"), IMAGES, "auto", force=True) == ""
    assert "is compute capability 8.9" in gpu_refusal(old, Machine("GeForce RTX 4090"), IMAGES, "auto", force=False)
    assert "is compute capability 7.0" in gpu_refusal(new, Machine("Tesla V100"), IMAGES, "auto", force=True)


def test_on_the_cpu_no_gpu_is_in_the_way() -> None:
    old = KNOWN["torch1.1-cu90"]
    assert gpu_refusal(old, Machine("GeForce RTX 4090"), IMAGES, "cpu", force=False) == ""
    assert gpu_refusal(old, NoGpus(), IMAGES, "auto", force=False) == ""
    assert gpu_refusal(old, NoGpus(), IMAGES, "cuda", force=False) == "no GPU here (none in this test)"
    assert gpu_refusal(KNOWN["torch2-cpu"], Machine("A100"), IMAGES, "auto", force=False) == ""
    assert gpu_refusal(KNOWN["torch2-cpu"], Machine("A100"), IMAGES, "cuda", force=False) == "it is made for the CPU"


@pytest.mark.parametrize("one", WITH_GPU_CODE, ids=lambda one: one.name)
def test_the_shipped_environments_agree_with_the_table(one: Environment) -> None:
    assert one.cuda
    (toolkit,) = [entry for entry in TABLE.cuda if entry.version == one.cuda.toolkit]
    least = toolkit.min_driver_minor_compatible or toolkit.min_driver
    assert Version(one.cuda.min_driver) >= Version(least)
    native, known, ptx = (
        [Version(capability) for capability in pair]
        for pair in (one.cuda.native, toolkit.capabilities, one.cuda.ptx or ())
    )
    assert known[0] <= native[0] <= native[1] <= known[1]
    assert not ptx or native[1] < ptx[0] <= ptx[1] <= known[1]


def test_every_compute_capability_of_the_table_belongs_to_one_architecture() -> None:
    listed = [capability for one in TABLE.architectures for capability in one.capabilities]
    assert len(listed) == len(set(listed))
    assert {one.capability for one in TABLE.gpus} <= set(listed)


def test_a_fact_without_its_source_is_refused(tmp_path: Path) -> None:
    text = (IMAGES / "compatibility.toml").read_text(encoding="utf-8")
    (tmp_path / "compatibility.toml").write_text(
        text.replace('source = "cmake', 'source = "hearsay', 1).replace(
            'source = "toolkit-driver, cmake"', 'source = "hearsay"', 1
        ),
        encoding="utf-8",
    )
    with pytest.raises(UserError, match=r"source 'hearsay' is not listed in \[\[sources\]\]; known: a100-whitepaper, "):
        read_table(tmp_path)
