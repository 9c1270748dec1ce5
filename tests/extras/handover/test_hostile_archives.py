"""Archives that somebody altered at random: the readers refuse them in a line of ours."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.extras.handover.archived import packed
from tests.readers import Reader, altered
from tests.synthetic_run import listed_example
from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.extras.handover.archives import zip_container
from tsuishi.extras.handover.archives.archive_check import verify_archive


def archive_readers(root: Path) -> dict[str, Reader]:
    """The readers of archives by name, with their file in a folder."""
    path = root / "archive.zip"
    packed(path, [listed_example(root / "archived-run")])
    readers = {"archive": lambda path: verify_archive(path, WORDS), "container": _container}
    return {name: Reader(read, path.read_bytes(), root, path.name) for name, read in readers.items()}


def _container(path: Path) -> None:
    try:
        with path.open("rb") as file:
            for entry in zip_container.Container(file).entries():
                for _ in entry.content:
                    pass
    except zip_container.BadArchive as error:
        raise UserError(str(error)) from None


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    return archive_readers(tmp_path_factory.mktemp("readers"))


def test_whatever_is_altered_a_reader_takes_or_refuses_in_a_line(every: dict[str, Reader]) -> None:
    reader = every["container"]
    assert reader.accepts(reader.content)

    @settings(max_examples=50, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
    @given(altered(reader.content))
    def read(content: bytes) -> None:
        reader.accepts(content)

    read()
