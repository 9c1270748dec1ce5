"""Step 3: the highest rates of the device, measured by suite device_limits' workload, against the card's data sheet."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.gpu import cases
from benchmarks.gpu.findings import Finding, judged, not_here, unsupported, within
from benchmarks.gpu.kit import Kit, trials_of
from tsuishi.machine.compatibility import read_table
from tsuishi.specs.data_sheets import DataSheet

# The shares of a sheet's rates that large products and copies should reach. cuBLAS reaches 0.65 to 0.95 of a peak, the
# less the more power the product takes; copies reach 0.8 to 0.95 of a bandwidth that is without refresh and ECC.
LEAST_OF_PEAK, LEAST_OF_BANDWIDTH = 0.6, 0.7
# Sheets are rounded.
ROUNDED = 1.02
# Makers and drivers round: the limits of one card differ by less, those of two cards of a name by more.
SAME_LIMIT = 0.02
# The rate of a lane by PCIe generation, in 1e9 B/s and one direction: 2.5 to 64 GT/s with the link's coding (PCI
# Express Base Specification). Headers of packets take a part, so that copies reach 0.75 to 0.9.
LANE_GB_PER_S = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
LEAST_OF_LINK = 0.6
# NVLink-C2C joins GPU and CPU of a GH200: 900 GB/s both ways together (NVIDIA Grace Hopper Superchip, data sheet).
C2C_GB_PER_S = 450.0
# Seconds between two launches of a framework that is not slowed down: it takes Python and the driver some 2 to 6 us.
LAUNCH_S = (2e-7, 2e-5)
SUITE = "kit_limits"


def sheet_of(gpu: Mapping[str, Any], sheets: Iterable[DataSheet]) -> tuple[DataSheet | None, str]:
    """The data sheet of a GPU, which is described as by Nvml.describe; or None, and why there is none."""
    name, limit_w = str(gpu["name"]).removeprefix("NVIDIA "), gpu["power_limit_w"]
    named = [sheet for sheet in sheets if name in sheet.names]
    if not named:
        return None, f"no data sheet of '{name}' in images/compatibility.toml"
    fitting = [sheet for sheet in named if limit_w and abs(limit_w / sheet.power_limit_w - 1) <= SAME_LIMIT]
    if not fitting:
        known = " or ".join(f"{sheet.power_limit_w:g}" for sheet in named)
        has = f"{limit_w:g} W" if limit_w else "an unknown power limit"
        return None, f"this '{name}' has {has}, and its data sheet is of {known} W"
    return fitting[0], ""


def measured(kit: Kit) -> Iterator[Finding]:
    """Findings on each limit. Keeps the evidence for later parts, as kit.notes["limits"]."""
    sizes = (512, 32) if kit.dry else (8192, 1024)
    products = {"precision": ["fp32", "bf16"] if kit.dry else ["fp32", "tf32", "fp16", "bf16"], "matrix_size": sizes[0]}
    copies = {"operation": ["memory_copy", "host_to_device", "device_to_host"], "buffer_mib": sizes[1]}
    groups: list[Mapping[str, Any]] = [products, copies, {"operation": "kernel_launch"}]
    text = cases.suite(
        "limits of the kit", "device_limits", cases.LIMITS, groups, cases.BRIEF if kit.dry else cases.SHORT
    )
    evidence = kit.measure(SUITE, text)
    kit.notes["limits"] = evidence
    sheet, why_not = (
        sheet_of(kit.gpu, read_table(kit.checkout.images).data_sheets) if kit.gpu else (None, kit.nvml.why_not)
    )
    for trial in trials_of(evidence):
        yield from of_trial(trial, kit.gpu, sheet, why_not)


def of_trial(
    trial: Mapping[str, Any], gpu: Mapping[str, Any], sheet: DataSheet | None, why_not: str
) -> Iterator[Finding]:
    """Whether a limit was measured, and what share of the sheet's it is; why_not: why there is no sheet."""
    axes = trial["axes"]
    operation, precision = axes["operation"], axes.get("precision", "")
    what = f"limit of {operation}{precision and ' ' + precision}"
    if trial["status"] == "unsupported":
        yield unsupported(what, trial["reason"])
        return
    if trial["status"] != "ok":
        yield judged(what, False, f"{trial['status']}: {trial['reason']}; expected a rate")
        return
    values = trial["values"]
    if operation == "kernel_launch":
        yield within(f"{what}, seconds each", values.get("step_s"), *LAUNCH_S, of_speed=True)
    elif operation == "matmul":
        rate = values.get("flops_per_s")
        yield judged(what, bool(rate), f"{(rate or 0) / 1e12:.4g} TFLOP/s, expected a rate")
        yield of_peak(f"{what} over the data sheet's", rate, precision, gpu, sheet, why_not)
    else:
        rate = values.get("bytes_per_s")
        yield judged(what, bool(rate), f"{(rate or 0) / 1e9:.4g} GB/s, expected a rate")
        if operation == "memory_copy":
            yield of_bandwidth(f"{what} over the data sheet's", rate, sheet, why_not)
        else:
            yield of_link(f"{what} over the link's", rate, gpu)


def clock_share(sheet: DataSheet, sm_clock_max_mhz: float | None) -> float:
    """The highest clock of a card over the sheet's boost clock; at least 1, as its rates are at boost clock."""
    return max(1.0, (sm_clock_max_mhz or 0.0) / sheet.boost_mhz)


def of_peak(
    what: str,
    flops_per_s: float | None,
    precision: str,
    gpu: Mapping[str, Any],
    sheet: DataSheet | None,
    why_not: str,
) -> Finding:
    """The share of the sheet's dense peak, which a card above its boost clock may exceed by as much."""
    peak = sheet.peak_tflops.get(precision) if sheet else None  # type: ignore[call-overload]
    if sheet is None or peak is None:
        return not_here(what, why_not or f"the data sheet has no {precision}")
    most = ROUNDED * clock_share(sheet, gpu.get("sm_clock_max_mhz"))
    both = f"{(flops_per_s or 0) / 1e12:.4g} of {peak:.4g} TFLOP/s ({sheet.source})"
    return within(what, flops_per_s and flops_per_s / (peak * 1e12), LEAST_OF_PEAK, most, more=both)


def of_bandwidth(what: str, bytes_per_s: float | None, sheet: DataSheet | None, why_not: str) -> Finding:
    if sheet is None:
        return not_here(what, why_not)
    both = f"{(bytes_per_s or 0) / 1e9:.4g} of {sheet.memory_gb_per_s:.4g} GB/s ({sheet.source})"
    share = bytes_per_s and bytes_per_s / (sheet.memory_gb_per_s * 1e9)
    return within(what, share, LEAST_OF_BANDWIDTH, ROUNDED, more=both)


def of_link(what: str, bytes_per_s: float | None, gpu: Mapping[str, Any]) -> Finding:
    """The share of the rate of the link to the CPU in one direction."""
    generation, lanes = gpu.get("pcie_generation_max"), gpu.get("pcie_lanes_max")
    if gpu.get("c2c_links"):
        both = f"{(bytes_per_s or 0) / 1e9:.4g} of {C2C_GB_PER_S:.4g} GB/s (NVLink-C2C)"
        return within(what, bytes_per_s and bytes_per_s / (C2C_GB_PER_S * 1e9), LEAST_OF_LINK, 1.0, more=both)
    if generation not in LANE_GB_PER_S or not lanes:
        return not_here(what, f"the link is unknown: generation {generation}, {lanes} lanes")
    link = LANE_GB_PER_S[generation] * lanes
    both = f"{(bytes_per_s or 0) / 1e9:.4g} of {link:.4g} GB/s (PCIe {generation}.0 x{lanes})"
    return within(what, bytes_per_s and bytes_per_s / (link * 1e9), LEAST_OF_LINK, 1.0, more=both)


def of_operation(trials: Sequence[Mapping[str, Any]], operation: str, quantity: str) -> float | None:
    """The value of a quantity of an operation's trial that is ok; None where there is none."""
    found = [trial["values"].get(quantity) for trial in trials if trial["axes"].get("operation") == operation]
    return next((value for value in found if value), None)
