"""Whether there is room, before anything is written."""

from pathlib import Path

import pytest

from tsuishi.base.errors import UserError
from tsuishi.machine import disk


def test_what_goes_to_one_file_system_is_added_up_and_refused_where_it_does_not_fit(tmp_path: Path) -> None:
    free = disk.free_bytes(tmp_path)
    disk.require([(tmp_path, free // 4), (None, free * 2)], "or else")
    for needs, margin in (
        ([(tmp_path, free * 3 // 4), (tmp_path.parent, free * 3 // 4)], 1.0),
        ([(tmp_path / "to be" / "made", free * 3 // 4)], 2.0),
    ):
        with pytest.raises(UserError) as caught:
            disk.require(needs, "or else", margin)
        asked, _, there = str(caught.value).partition(" of disk are needed and ")
        assert asked.endswith(" GB") or asked.endswith(" MB")
        assert there.endswith(f" are free at {tmp_path}: free some, or else")
