"""Which environments a run takes that names none, by card and driver: a framework's oldest and newest that fit."""

import pytest

from tests.machine.test_compatibility import Machine
from tsuishi.base.checkout import Checkout
from tsuishi.machine.compatibility import by_ptx, read_table
from tsuishi.plan.choice import Choice, fitting_defaults

# The last releases of driver branches that the cards can have.
DEFAULTS = [
    ("Tesla K80", "470.256.02", "tf1.13-cu100-wheels torch1.2-cu100 torch2.0-cu117"),
    ("Tesla P100", "535.288.01", "tf1.13-cu100-wheels tf2-cuda torch1.2-cu100 torch2.5-cu124"),
    ("Tesla V100", "535.288.01", "tf1.13-cu100-wheels tf2-cuda torch1.2-cu100 torch2.8-cu128"),
    ("Tesla V100", "580.95.05", "tf1.13-cu100-wheels tf2-cuda torch1.2-cu100 torch2.8-cu128"),
    ("Tesla T4", "550.163.01", "tf1.13-cu100-wheels tf2-cuda torch1.2-cu100 torch2.8-cu128"),
    ("GeForce RTX 2080 Ti", "550.163.01", "tf1.13-cu100-wheels tf2-cuda torch1.2-cu100 torch2.8-cu128"),
    ("A100", "535.288.01", "tf2-cuda torch1.13-cu117 torch2.8-cu128"),
    ("H100", "550.163.01", "tf2-cuda torch2.5-cu124 torch2.8-cu128"),
    ("H100", "580.95.05", "tf2-cuda torch2.5-cu124 torch2-cuda"),
    ("GeForce RTX 4090", "580.95.05", "tf2-cuda torch1.13-cu117 torch2-cuda"),
    ("GeForce RTX 5090", "580.95.05", "torch2.8-cu128 torch2-cuda"),
    ("B200", "580.95.05", "torch2.8-cu128 torch2-cuda"),
    ("GH200", "580.95.05", "torch2-cuda-aarch64"),
]


@pytest.mark.parametrize(("card", "driver", "wanted"), DEFAULTS)
def test_a_run_that_names_none_takes_a_frameworks_oldest_and_newest_that_fit(
    card: str, driver: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64" if card.startswith("GH200") else "x86_64")
    checkout, machine = Checkout(), Machine(card, driver=driver)
    chosen = fitting_defaults(checkout, Choice(), machine)
    assert sorted(each.name for each in chosen) == sorted(wanted.split())
    gpus, table = machine.describe(), read_table(checkout.images)
    assert not any(by_ptx(each, gpus, table) for each in chosen), "a driver compiles PTX for up to half an hour"
