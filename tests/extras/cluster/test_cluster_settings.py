"""Settings that the cluster adds to those of the core."""

import re
from typing import Any

import pytest

from tsuishi.base.errors import UserError
from tsuishi.base.settings import read_settings
from tsuishi.extras.cluster.settings import of_cluster


def test_they_stand_among_those_of_the_core_and_are_checked_as_these() -> None:
    given = read_settings({"slurm": {"partition": "main", "time": "1:00:00"}}, {"INVOKE_TSUISHI_SLURM_LAG_S": "5"}, {})
    own = of_cluster(given)
    assert (own.slurm_partition, own.slurm_time, own.slurm_lag_s, own.slurm_poll_s) == ("main", "1:00:00", 5.0, 10.0)


@pytest.mark.parametrize(
    ("configured", "flags", "said"),
    [
        (
            {},
            {"slurm_time": "2h"},
            "key 'slurm_time': string should match pattern '^(([0-9]+-)?[0-9]+(:[0-9]+){0,2})?$'; given: '2h'",
        ),
        (
            {},
            {"slurm_partition": "main --wrap"},
            r"key 'slurm_partition': string should match pattern '^[A-Za-z0-9_.,:=&|()\[\]*@/+-]*$'; "
            "given: 'main --wrap'",
        ),
        ({"slurm": "main"}, {}, "key 'slurm' in invoke.yaml: expected keys below it, as slurm.partition"),
    ],
)
def test_what_is_wrong_is_said(configured: dict[str, Any], flags: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=f"^settings: {re.escape(said)}$"):
        read_settings(configured, {}, flags)


def test_they_stand_together_in_the_file_and_are_overridden_as_all_others() -> None:
    configured = {"executor": "slurm", "slurm": {"partition": "main", "account": "a", "at_once": 8}}
    settings = read_settings(configured, {"INVOKE_TSUISHI_SLURM_AT_ONCE": "4"}, {"slurm_partition": "gpu[1-2]"})
    own = of_cluster(settings)
    assert (settings.executor, own.slurm_at_once, own.slurm_partition) == ("slurm", 4, "gpu[1-2]")
    assert (own.slurm_account, own.slurm_gres) == ("a", "")


def test_a_wrong_name_gets_the_nearest_name() -> None:
    with pytest.raises(UserError, match=r"unknown key in invoke.yaml 'tsuishi\.slurm\.tme'.*did you mean.*slurm\.time"):
        read_settings({"slurm": {"tme": "1"}}, {}, {})
