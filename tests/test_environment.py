"""Environments: the shipped ones parse, a wrong one says why, and the spec id follows what is built, only that."""

from pathlib import Path

import pytest

from tsuishi.environment import (
    Environment,
    known_environments,
    read_environment,
    select_environments,
)
from tsuishi.errors import UserError
from tsuishi.rooms import Rooms

IMAGES = Rooms().images
A, B = "a" * 64, "b" * 64
VALID = """
title = "A title"
framework = "torch"
accelerators = ["cpu"]
python = "3.6"
[base]
reference = "docker.io/library/python:3.6.15-slim-bullseye"
[promises]
torch = "1.1.0"
"""
LOCK = f"torch==1.1.0 --hash=sha256:{A}\nnumpy==1.16.6 --hash=sha256:{B}\n"


def environment(folder: Path, text: str = VALID, lock: str = LOCK) -> Environment:
    path = folder / "tiny.toml"
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".lock").write_text(lock, encoding="utf-8")
    return read_environment(path)


def message(folder: Path, text: str = VALID, lock: str = LOCK) -> str:
    with pytest.raises(UserError) as caught:
        environment(folder, text, lock)
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("name", sorted(known_environments(IMAGES)))
def test_every_shipped_environment_is_read_with_its_lock(name: str) -> None:
    shipped = read_environment(IMAGES / f"{name}.toml")
    assert shipped.name == name
    assert shipped.pinned == (name != "host")
    assert bool(shipped.pins) == shipped.pinned
    for pin in shipped.pins:
        assert pin.file, f"{name}.lock: {pin.name} says no file, so a plan cannot say how much to fetch"
        assert pin.size_bytes
    if shipped.pinned:
        assert {"python", "numpy", shipped.framework} <= set(shipped.promises)
        assert {"pip", "setuptools"} <= {pin.name for pin in shipped.pins}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "accelerators =",
            "accelerator =",
            "tiny.toml: unknown key 'accelerator'; did you mean 'accelerators'? known here: name, title, description, "
            "framework, accelerators, default, compute_capabilities, python, base, promises, indexes, debs, expect, "
            "pins (and 1 more)",
        ),
        (
            '"torch"',
            '"jax"',
            "tiny.toml: key 'framework': input should be 'torch', 'tensorflow' or 'any'; given: 'jax'",
        ),
        (
            '["cpu"]',
            '["cpu", "gpu"]',
            "tiny.toml: key 'accelerators[1]': input should be 'cpu' or 'cuda'; given: 'gpu'",
        ),
        (
            '["cpu"]',
            "[]",
            "tiny.toml: key 'accelerators': tuple should have at least 1 item after validation, not 0; given: []",
        ),
        ('"3.6"', '"2.7"', "tiny.toml: key 'python': string should match pattern '^3\\.\\d+$'; given: '2.7'"),
        (
            'python = "3.6"',
            "",
            "tiny.toml: 'base' and 'python' go together: give both (pinned) or neither (a host interpreter)",
        ),
        (
            'torch = "1.1.0"',
            "",
            "tiny.toml: 'promises' is empty: say which versions the environment must report, e.g. torch = \"1.1.0\"",
        ),
        ('"1.1.0"', '"1.1"', "tiny.toml: promises torch 1.1, but tiny.lock pins 1.1.0"),
        ('torch = "1.1.0"', 'NumPy = "1.17"', "tiny.toml: promises NumPy 1.17, but tiny.lock pins 1.16.6"),
        (
            "docker.io/library/python:3.6.15-slim-bullseye",
            "python:3.6",
            "tiny.toml: key 'base.reference': string should match pattern "
            "'^[a-z0-9.-]+(:\\d+)?/[a-z0-9._/-]+:[\\w.-]+$'; given: 'python:3.6'",
        ),
        (
            "[promises]",
            'digest = "sha256:abc"\n[promises]',
            "tiny.toml: key 'base.digest': string should match pattern '^(sha256:[0-9a-f]{64})?$'; given: 'sha256:abc'",
        ),
        ("title =", "pins = []\ntitle =", "tiny.toml: key 'pins' is not for this file to say; remove it"),
    ],
)
def test_a_wrong_key_or_value_is_said_with_its_remedy(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert VALID.count(old) >= 1
    assert message(tmp_path, VALID.replace(old, new, 1)) == said


def test_a_file_name_no_image_can_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "My Env.toml").write_text(VALID)
    with pytest.raises(UserError) as caught:
        read_environment(tmp_path / "My Env.toml")
    said = "key 'name': string should match pattern '^[a-z0-9][a-z0-9._-]*$'; given: 'My Env'"
    assert str(caught.value) == f"{tmp_path}/My Env.toml: {said}"


def test_a_pinned_environment_without_its_lock_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(VALID)
    lock = path.with_suffix(".lock")
    with pytest.raises(UserError) as caught:
        read_environment(path)
    assert str(caught.value) == f"{lock}: the lock cannot be read: [Errno 2] No such file or directory: '{lock}'"


def test_the_spec_id_follows_lock_base_promises_and_template(tmp_path: Path) -> None:
    first = environment(tmp_path)
    reference = first.spec_id("template")
    assert reference == environment(tmp_path).spec_id("template")
    others = [
        first.spec_id("other template"),
        environment(tmp_path, lock=LOCK.replace(B, A)).spec_id("template"),
        environment(tmp_path, lock=LOCK.replace("1.16.6", "1.16.5")).spec_id("template"),
        environment(tmp_path, VALID.replace("bullseye", "buster")).spec_id("template"),
        environment(tmp_path, VALID.replace("[promises]", f'digest = "sha256:{A}"\n[promises]')).spec_id("template"),
        environment(tmp_path, VALID + 'numpy = "1.16.6"\n').spec_id("template"),
        environment(tmp_path, VALID.replace('"3.6"', '"3.7"')).spec_id("template"),
    ]
    assert len({reference, *others}) == len(others) + 1


def test_the_spec_id_does_not_follow_words_guesses_and_places(tmp_path: Path) -> None:
    reference = environment(tmp_path).spec_id("template")
    for old, new in (
        ("A title", "Another"),
        ("title =", 'description = "words"\ntitle ='),
        ("title =", "default = true\ntitle ="),
        ("title =", 'indexes = ["https://example.net/simple"]\ntitle ='),
        ("title =", 'compute_capabilities = ["3.5", "7.0"]\ntitle ='),
        ("[base]", "[expect]\nbuild_s = 1.0\n[base]"),
    ):
        assert environment(tmp_path, VALID.replace(old, new, 1)).spec_id("template") == reference, new
    commented = LOCK.replace("\n", "  # torch-1.1.0-cp36-none.whl 123\n", 1)
    assert environment(tmp_path, lock=commented).spec_id("template") == reference


def test_the_lock_hash_does_not_follow_the_order_of_lines(tmp_path: Path) -> None:
    turned = "\n".join(reversed(LOCK.splitlines()))
    assert environment(tmp_path, lock=turned).lock_sha256 == environment(tmp_path).lock_sha256
    assert environment(tmp_path, lock=LOCK.replace(B, A)).lock_sha256 != environment(tmp_path).lock_sha256


def test_without_names_the_default_ones_are_chosen_and_a_name_always_works(tmp_path: Path) -> None:
    environment(tmp_path)
    assert select_environments(tmp_path, ()) == ()
    assert [one.name for one in select_environments(tmp_path, ("tiny",))] == ["tiny"]
    environment(tmp_path, "default = true\n" + VALID)
    assert [one.name for one in select_environments(tmp_path, ())] == ["tiny"]


def test_an_unknown_environment_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    environment(tmp_path)
    with pytest.raises(UserError) as caught:
        select_environments(tmp_path, ("tinny",))
    assert str(caught.value) == "unknown environment 'tinny'; did you mean 'tiny'? known: tiny"
