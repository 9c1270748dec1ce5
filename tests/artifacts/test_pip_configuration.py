"""What pip is configured with, asked of a real pip."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from unearth import PackageFinder

from tsuishi.artifacts.pip_configuration import Sources, pip_options, pip_sources


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """pip without any configuration, asked anew; a file to configure it with."""
    pip_options.cache_clear()
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("HOME", str(tmp_path))
    yield tmp_path / "pip.conf"
    pip_options.cache_clear()


# Where pip looks when nobody tells it anything.
DEFAULT_INDEX = PackageFinder().sources[0]["url"]


def configure(file: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(text)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    pip_options.cache_clear()


def test_an_unconfigured_pip_looks_in_pypi(pip: Path) -> None:
    assert pip_sources() == Sources((DEFAULT_INDEX,), ())


def test_pips_variables_are_read(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://a/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://b/simple https://c/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels https://d/links")
    assert pip_sources() == Sources(
        ("https://a/simple", "https://b/simple", "https://c/simple"), ("/wheels", "https://d/links")
    )


def test_pips_file_is_read_also_over_several_lines(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(pip, "[global]\nextra-index-url =\n    https://a/simple\n    https://b/simple\n", monkeypatch)
    assert pip_sources().indexes == (DEFAULT_INDEX, "https://a/simple", "https://b/simple")


@pytest.mark.long
def test_a_variable_beats_the_install_section_beats_the_global_one(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[global]\nindex-url = https://global/\n[wheel]\nindex-url = https://wheel/\n"
    configure(pip, text, monkeypatch)
    assert pip_sources().indexes == ("https://global/",)
    configure(pip, text + "[install]\nindex-url = https://install/\n", monkeypatch)
    assert pip_sources().indexes == ("https://install/",)
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable/")
    pip_options.cache_clear()
    assert pip_sources().indexes == ("https://variable/",)


@pytest.mark.parametrize(("word", "indexes"), [("1", ()), ("true", ()), ("0", (DEFAULT_INDEX,))])
def test_no_index_leaves_the_folders_only(
    pip: Path, monkeypatch: pytest.MonkeyPatch, word: str, indexes: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", word)
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    assert pip_sources() == Sources(indexes, ("/wheels",))
