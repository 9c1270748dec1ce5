"""The folders of a user, where its variables are as the XDG specification has them, and where they are not."""

from pathlib import Path

import pytest

from tsuishi.base import home
from tsuishi.base.errors import UserError


@pytest.mark.parametrize(
    ("given", "cache", "configuration"),
    [
        ("", "/home/ada/.cache/tsuishi", "/home/ada/.config/tsuishi"),
        ("/data", "/data/tsuishi", "/data/tsuishi"),
        ("data", "/home/ada/.cache/tsuishi", "/home/ada/.config/tsuishi"),
    ],
    ids=["not set", "absolute", "relative"],
)
def test_a_variable_of_xdg_counts_where_its_path_is_absolute(
    monkeypatch: pytest.MonkeyPatch, given: str, cache: str, configuration: str
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setenv("XDG_CONFIG_HOME", given)
    assert (home.cache(), home.configuration()) == (Path(cache), Path(configuration))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "", "/home/ada/.cache/tsuishi/x"), "; set XDG_CACHE_HOME to a folder that you can write"),
        (FileNotFoundError(2, "", "/home/ada/.local"), "; set XDG_DATA_HOME to a folder that you can write"),
        (PermissionError(13, "", "results/.run-1"), "; change its rights, or name another place"),
        (FileNotFoundError(2, "", "results/x"), ""),
        (FileNotFoundError(2, "", "/home/ada/.cache/table.csv"), ""),
        (OSError(28, "no path"), ""),
    ],
)
def test_what_cannot_be_written_has_a_remedy(monkeypatch: pytest.MonkeyPatch, error: OSError, said: str) -> None:
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert home.remedy(error) == said


def test_the_home_of_nobody_is_named() -> None:
    with pytest.raises(UserError, match=r"^~nobody-of-this-name/x: whose home is that\? Write the whole path$"):
        home.expanded("~nobody-of-this-name/x")
