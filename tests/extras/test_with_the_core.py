"""What the core keeps for all extras together: their translations, and the columns of their tables."""

import shutil
from pathlib import Path

import pytest

from tests.base.test_language import OTHERS, ROOT, catalogue
from tests.specs.test_vocabulary import columns_of_tables
from tsuishi.base.language import CATALOGUES
from tsuishi.report.output.catalogues import messages, update
from tsuishi.specs.axes import TAKEN


@pytest.mark.parametrize("language", OTHERS)
def test_no_translation_is_left_over(language: str) -> None:
    said = {str(message.id) for message in messages(ROOT) if message.id}
    assert {str(message.id) for message in catalogue(language) if message.id} <= said


@pytest.mark.parametrize("language", OTHERS)
def test_the_catalogue_is_as_the_command_that_updates_it_leaves_it(language: str, tmp_path: Path) -> None:
    copied = Path(shutil.copy(CATALOGUES / f"{language}.po", tmp_path))
    update(copied, ROOT)
    assert copied.read_text(encoding="utf-8") == (CATALOGUES / f"{language}.po").read_text(encoding="utf-8")


def test_every_name_that_no_axis_can_have_is_a_column() -> None:
    # The last three are columns of frames, on the way to a table.
    assert TAKEN - columns_of_tables() == {"axes", "elapsed_s", "trial"}
