"""Shared options: flags over variables over invoke.yaml over defaults, each checked by hand."""

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings, mirrored, mirrored_url, read_settings

*_others, _last = map(repr, get_args(Settings.model_fields["engine"].annotation))
ENGINES = f"{', '.join(_others)} or {_last}"


def message(
    configured: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
    flags: dict[str, Any] | None = None,
) -> str:
    with pytest.raises(UserError) as caught:
        read_settings(configured or {}, environ or {}, flags or {})
    return str(caught.value)


def test_a_flag_beats_a_variable_beats_the_file_beats_the_default() -> None:
    file, variable, flag = {"engine": "venv"}, {"INVOKE_TSUISHI_ENGINE": "host"}, {"engine": "docker"}
    assert read_settings({}, {}, {}).engine == "auto"
    assert read_settings(file, {}, {}).engine == "venv"
    assert read_settings(file, variable, {}).engine == "host"
    assert read_settings(file, variable, flag).engine == "docker"


@pytest.mark.parametrize("nothing", ["", None])
def test_a_level_that_says_nothing_leaves_it_to_the_next(nothing: str | None) -> None:
    file = {"results": "elsewhere"}
    assert read_settings(file, {}, {"results": nothing}).results == Path("elsewhere")
    assert read_settings(file, {"INVOKE_TSUISHI_RESULTS": ""}, {}).results == Path("elsewhere")
    assert read_settings({"results": nothing}, {}, {}).results == Path("results")


def test_variables_of_others_are_left_alone() -> None:
    assert read_settings({}, {"INVOKE_RUN_ECHO": "1", "TSUISHI_ENGINE": "host"}, {}).engine == "auto"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"environ": {"INVOKE_TSUISHI_ENGIN": "venv"}},
            "unknown variable 'INVOKE_TSUISHI_ENGIN'; did you mean 'INVOKE_TSUISHI_ENGINE'? known: "
            + ", ".join(sorted(f"INVOKE_TSUISHI_{key.upper()}" for key in Settings.model_fields)),
        ),
        (
            {"configured": {"mirror": {}}},
            "unknown key in invoke.yaml 'tsuishi.mirror'; did you mean 'tsuishi.mirrors'? known: "
            + ", ".join(sorted(f"tsuishi.{key.replace('slurm_', 'slurm.')}" for key in Settings.model_fields)),
        ),
        (
            {"flags": {"engine": "podman"}},
            f"settings: key 'engine': input should be {ENGINES}; given: 'podman'",
        ),
        (
            {"environ": {"INVOKE_TSUISHI_ENGINE": "false"}},
            f"settings: key 'engine': input should be {ENGINES}; given: 'false'",
        ),
        (
            {"flags": {"gpus": "0,1"}},
            "settings: key 'gpus': expected all, how many (2), or which by index or UUID (device=0,1 or "
            "device=GPU-...); given: '0,1'",
        ),
        (
            {"flags": {"busy_gpu": "steal"}},
            "settings: key 'busy_gpu': input should be 'wait', 'refuse' or 'use'; given: 'steal'",
        ),
        (
            {"environ": {"INVOKE_TSUISHI_TELEMETRY_INTERVAL": "false"}},
            "settings: key 'telemetry_interval': input should be a valid number, unable to parse string as a number; "
            "given: 'false'",
        ),
        (
            {"flags": {"telemetry_interval": "0"}},
            "settings: key 'telemetry_interval': input should be greater than or equal to 0.1; given: '0'",
        ),
        (
            {"flags": {"telemetry_interval": "nan"}},
            "settings: key 'telemetry_interval': input should be a finite number; given: 'nan'",
        ),
        (
            {"environ": {"INVOKE_TSUISHI_MEMORY_GIB": "inf"}},
            "settings: key 'memory_gib': input should be a finite number; given: 'inf'",
        ),
        (
            {"flags": {"mirrors": "docker.io"}},
            "settings: key 'mirrors': expected asked=used pairs separated by commas",
        ),
        (
            {"flags": {"mirrors": "a=,b=c"}},
            "settings: key 'mirrors': expected asked=used pairs separated by commas",
        ),
        (
            {"configured": {"mirrors": ["a=b"]}},
            "settings: key 'mirrors': input should be a valid dictionary; given: ['a=b']",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_is_known(given: dict[str, Any], said: str) -> None:
    assert message(**given) == said


def test_lists_and_mirrors_are_read_from_text_and_from_the_file() -> None:
    settings = read_settings(
        {"indexes": ["https://a", "https://b"], "mirrors": {"docker.io": "x"}},
        {"INVOKE_TSUISHI_FIND_LINKS": "/one, /two words,", "INVOKE_TSUISHI_PYTHONS": "/opt/3.6"},
        {"mirrors": " docker.io/library/python = mirror.lan/python , a:1/b:2=c "},
    )
    assert settings.indexes == ("https://a", "https://b")
    assert settings.find_links == ("/one", "/two words")
    assert settings.pythons == ("/opt/3.6",)
    assert settings.mirrors == {"docker.io/library/python": "mirror.lan/python", "a:1/b:2": "c"}


def test_the_cache_has_its_whole_path_since_interpreters_in_it_are_started_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert read_settings({}, {}, {}).cache == Path("/home/somebody/.cache/tsuishi")
    assert read_settings({}, {}, {"cache": "here"}).cache == tmp_path / "here"
    assert read_settings({"cache": "~/c", "results": "~/r"}, {}, {}).cache == Path("/home/somebody/c")
    assert read_settings({"cache": "~/c", "results": "~/r"}, {}, {}).results == Path("/home/somebody/r")


@pytest.mark.parametrize(
    ("reference", "mirrors", "used"),
    [
        ("docker.io/library/python:3.6", {}, "docker.io/library/python:3.6"),
        ("docker.io/library/python:3.6", {"docker.io/library/python:3.6": "m/p@sha256:1"}, "m/p@sha256:1"),
        ("docker.io/library/python:3.6", {"docker.io/library/python": "m/p"}, "m/p:3.6"),
        ("docker.io/library/python:3.6", {"docker.io": "m.lan:5000/hub"}, "m.lan:5000/hub/library/python:3.6"),
        ("docker.io/library/python:3.6", {"docker.io/": "m.lan"}, "m.lan/library/python:3.6"),
        ("docker.io/library/python:3.6", {"docker.io": "m.lan/"}, "m.lan/library/python:3.6"),
        ("docker.io/library/python:3.6", {"docker.io/lib": "m"}, "docker.io/library/python:3.6"),
        ("docker.io/library/python:3.6", {"docker.io": "far", "docker.io/library": "near"}, "near/python:3.6"),
        (
            "docker.io/library/python:3.6",
            {"docker.io/library/python": "repository", "docker.io/library/python:3.6": "whole"},
            "whole",
        ),
        ("host:5000/a/b:1", {"host:5000": "m"}, "m/a/b:1"),
    ],
)
def test_a_mirror_replaces_a_reference_or_the_longest_repository(
    reference: str, mirrors: dict[str, str], used: str
) -> None:
    assert mirrored(reference, mirrors) == used


@pytest.mark.parametrize(
    ("url", "mirrors", "used"),
    [
        ("https://a.example/whl/cu100/x", {}, "https://a.example/whl/cu100/x"),
        ("https://a.example/whl/cu100/x", {"https://a.example/whl/cu100": "https://m/whl"}, "https://m/whl/x"),
        ("https://a.example/whl/cu100/", {"https://a.example/whl/cu100/": "https://m/whl/"}, "https://m/whl/"),
        ("https://a.example/whl/cu100", {"https://a.example/whl/cu100/": "https://m/whl/"}, "https://m/whl"),
        ("https://a.example/whl/cu100", {"https://a.example/whl/cu10": "https://m"}, "https://a.example/whl/cu100"),
        ("https://a.example/b/c", {"https://a.example": "far", "https://a.example/b": "near"}, "near/c"),
        ("http://a.example/b", {"https://a.example": "https://m"}, "http://a.example/b"),
        ("https://a.example/b", {"https://a.example": "file:///srv/wheels"}, "file:///srv/wheels/b"),
        ("https://a.example:8443/b", {"https://a.example": "https://m"}, "https://a.example:8443/b"),
    ],
)
def test_a_mirror_replaces_the_longest_beginning_of_a_url(url: str, mirrors: dict[str, str], used: str) -> None:
    assert mirrored_url(url, mirrors) == used


def test_base_images_and_urls_share_one_map_and_only_the_former_make_an_environment_another() -> None:
    given = "docker.io=registry.lan,https://a.example/whl=https://ada:token@m.lan/whl"
    settings = read_settings({}, {"INVOKE_TSUISHI_MIRRORS": given}, {})
    assert settings.mirrors == {"docker.io": "registry.lan", "https://a.example/whl": "https://ada:token@m.lan/whl"}
    assert settings.base_mirrors == {"docker.io": "registry.lan"}


@pytest.mark.parametrize(("said", "offline"), [("1", True), ("true", True), ("false", False), ("0", False)])
def test_offline_is_read_from_words(said: str, offline: bool) -> None:
    assert read_settings({}, {"INVOKE_TSUISHI_OFFLINE": said}, {}).offline is offline
    assert read_settings({"offline": not offline}, {}, {"offline": said}).offline is offline


def test_a_bundle_of_certificates_has_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_settings({}, {}, {"ca_bundle": "site.pem"}).ca_bundle == tmp_path / "site.pem"
    assert read_settings({}, {}, {}).ca_bundle is None


PART = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)


@given(st.lists(PART, min_size=2, max_size=4), PART, st.integers(1, 3), PART)
def test_the_tag_always_survives_a_mirror(parts: list[str], tag: str, depth: int, mirror: str) -> None:
    reference = "/".join(parts) + ":" + tag
    asked = "/".join(parts[:depth])
    used = mirrored(reference, {asked: f"{mirror}.lan"})
    assert used == f"{mirror}.lan" + reference.removeprefix(asked)


def test_how_long_the_main_job_may_take_is_ten_minutes_where_a_site_says_nothing_else() -> None:
    assert read_settings({}, {}, {}).within == "10m"
    assert read_settings({"within": "1h"}, {"INVOKE_TSUISHI_WITHIN": "none"}, {}).within == "none"
    with pytest.raises(UserError, match=r"^--within takes a duration such as 90s, 10m or 2h, or none; given: soon$"):
        read_settings({"within": "soon"}, {}, {})


def test_paths_of_the_file_and_of_variables_begin_at_the_root_and_those_of_flags_where_they_were_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "suites").mkdir()
    monkeypatch.chdir(tmp_path / "suites")
    settings = read_settings(
        {"cache": "cache", "ca_bundle": "site.pem", "pythons": ["pythons", "/opt/3.6"], "host_python": "python3"},
        {"INVOKE_TSUISHI_DATA": "data", "INVOKE_TSUISHI_FIND_LINKS": "wheels,https://a.example/wheels,~/w"},
        {},
        Checkout(tmp_path),
    )
    assert settings.cache == tmp_path / "cache"
    assert settings.ca_bundle == tmp_path / "site.pem"
    assert settings.data == tmp_path / "data"
    assert settings.pythons == (str(tmp_path / "pythons"), "/opt/3.6")
    assert settings.find_links == (str(tmp_path / "wheels"), "https://a.example/wheels", "~/w")
    assert settings.host_python == "python3"
    typed = read_settings({"data": "there"}, {}, {"data": "here", "host_python": "bin/python"}, Checkout(tmp_path))
    assert typed.data == tmp_path / "suites" / "here"
    assert typed.host_python == "bin/python"
    assert (
        read_settings({"host_python": "bin/python"}, {}, {}, Checkout(tmp_path)).host_python == f"{tmp_path}/bin/python"
    )


@pytest.mark.parametrize(
    ("folder", "results", "reports", "elsewhere"),
    [
        (".", "results", "reports/out", "../runs"),
        ("suites/workloads", "../../results", "../../reports/out", "../../../runs"),
    ],
)
def test_what_a_user_is_shown_can_be_used_in_the_folder_where_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, results: str, reports: str, elsewhere: str
) -> None:
    root = tmp_path / "checkout"
    (root / "suites" / "workloads").mkdir(parents=True)
    monkeypatch.chdir(root / folder)
    settings = read_settings({}, {}, {}, Checkout(root))
    assert (str(settings.results), str(settings.reports)) == (results, reports)
    assert str(read_settings({"results": "../runs"}, {}, {}, Checkout(root)).results) == elsewhere
    assert str(read_settings({}, {"INVOKE_TSUISHI_RESULTS": "/runs"}, {}, Checkout(root)).results) == "/runs"
    monkeypatch.chdir(tmp_path)
    assert read_settings({}, {}, {}, Checkout(root)).results == root / "results"
