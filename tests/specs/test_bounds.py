"""Numbers and names of files that nothing can be measured with, or no file can have, are refused in a line."""

from pathlib import Path

import pytest

from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.base.files import unfit
from tsuishi.run.new_run import require_name
from tsuishi.specs.suite import read_suite

SUITE = """
title = "bounds"
workload = "training"
[profiles.quick]
{profile}
[[groups]]
axes = {{ protocol = "steady", batch_size = [16] }}
expect = {{ quick = {{ s = {expected} }} }}
"""


@pytest.mark.parametrize(
    ("profile", "expected", "key"),
    [
        ("", "-1", "groups[0].expect.quick.s"),
        ("", "1e308", "groups[0].expect.quick.s"),
        ("", "nan", "groups[0].expect.quick.s"),
        ("settings = { warm_up_s = 1e308 }", "1", "profiles.quick.settings.warm_up_s"),
        ("settings = { epochs = 9000000000 }", "1", "profiles.quick.settings.epochs"),
        ("settings = { seed = -1 }", "1", "profiles.quick.settings.seed"),
        ("timeout_s = inf", "1", "profiles.quick.timeout_s"),
        ("repetitions = { cpu = 1000000 }", "1", "profiles.quick.repetitions.cpu"),
    ],
)
def test_a_number_out_of_bounds_is_named_by_its_key(tmp_path: Path, profile: str, expected: str, key: str) -> None:
    path = tmp_path / "bounds.toml"
    path.write_text(SUITE.format(profile=profile, expected=expected))
    with pytest.raises(UserError, match=rf"bounds\.toml: key '{key.replace('[', '.').replace(']', '.')}': input"):
        read_suite(path, WORDS)


@pytest.mark.parametrize("name", ["con", "NUL", "aux.toml", "lpt1", "a" * 101])
def test_a_name_that_no_file_can_have_everywhere_is_refused(name: str) -> None:
    assert unfit(name)
    with pytest.raises(UserError, match="--name: "):
        require_name(name)


def test_the_name_of_a_suite_is_the_name_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "con.toml"
    path.write_text(SUITE.format(profile="", expected="1"))
    with pytest.raises(UserError, match="'con' is a device on Windows"):
        read_suite(path, WORDS)
