"""Settings that the cluster adds to those of the core."""

import re

import pytest

from tsuishi.base.errors import UserError
from tsuishi.base.settings import read_settings
from tsuishi.extras.cluster.settings import of_cluster


def test_they_stand_among_those_of_the_core_and_are_checked_as_these() -> None:
    given = read_settings({"slurm": {"partition": "main", "time": "1:00:00"}}, {"INVOKE_TSUISHI_SLURM_LAG_S": "5"}, {})
    own = of_cluster(given)
    assert (given.slurm_partition, own.slurm_time, own.slurm_lag_s, own.slurm_poll_s) == ("main", "1:00:00", 5.0, 10.0)
    said = "settings: key 'slurm_time': string should match pattern '^(([0-9]+-)?[0-9]+(:[0-9]+){0,2})?$'; given: '2h'"
    with pytest.raises(UserError, match=f"^{re.escape(said)}$"):
        read_settings({}, {}, {"slurm_time": "2h"})


def test_a_wrong_name_gets_the_nearest_name() -> None:
    with pytest.raises(UserError, match=r"unknown key in invoke.yaml 'tsuishi\.slurm\.tme'.*did you mean.*slurm\.time"):
        read_settings({"slurm": {"tme": "1"}}, {}, {})
