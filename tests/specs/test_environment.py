"""Environments: the shipped ones parse, a wrong one says why, and the spec id follows what is built, only that."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.environments.engine_choice import Engines
from tsuishi.specs.debian import apt_lock
from tsuishi.specs.environment import (
    Environment,
    default_environments,
    find_environment,
    known_environments,
    named_environments,
    read_environment,
    without_engine,
)

IMAGES = Checkout().images
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
FILE = "  # torch-1.1.0-cp36-cp36m-linux_x86_64.whl 123\n"


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
    assert bool(shipped.pins) == (shipped.pinned and shipped.packages == "locked")
    for pin in shipped.pins:
        if pin.sha256:
            assert pin.file, f"{name}.lock: {pin.name} says no file, so a plan cannot say how much to fetch"
            assert pin.size_bytes
    if shipped.pinned:
        assert {"python", shipped.framework} <= set(shipped.promises)
        assert shipped.origins, "nobody will know what to do when its parts are gone"
    if shipped.pins:
        assert "numpy" in shipped.promises
        assert {"pip", "setuptools"} <= {pin.name for pin in shipped.pins}
        asked = {canonicalize_name(Requirement(text).name) for text in shipped.requires}
        assert asked <= {pin.name for pin in shipped.pins}
    if "cuda" in shipped.accelerators and shipped.pinned:
        assert shipped.cuda
        assert shipped.redistribution


@pytest.mark.parametrize("name", sorted(known_environments(IMAGES)))
def test_every_shipped_environment_has_what_every_requirement_asks_for(name: str) -> None:
    shipped = read_environment(IMAGES / f"{name}.toml")
    locked = {pin.name: pin.version for pin in shipped.pins}
    for requirement in map(Requirement, shipped.requires):
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)], prereleases=True), (
            requirement
        )


def test_what_nobody_here_has_seen_is_open() -> None:
    assert read_environment(IMAGES / "torch1.1-cu90.toml").open == ()
    opened = read_environment(IMAGES / "torch1.1-cu100.toml").open
    assert opened[0] == "torch==1.1.0"
    assert "python3.6" in opened


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "accelerators =",
            "accelerator =",
            "tiny.toml: unknown key 'accelerator'; did you mean 'accelerators'? known here: name, title, description, "
            "lacks, framework, accelerators, machine, default, origins, redistribution, cuda, python, base, packages, "
            "requires, "
            "promises, indexes, urls, apt, libraries, family, released, as_of, expect, pins, debs, engine (and 1 more)",
        ),
        (
            '"torch"',
            '"JAX"',
            "tiny.toml: key 'framework': string should match pattern '^[a-z][a-z0-9_-]*$'; given: 'JAX'",
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
        ('"3.6"', '"2.7"', "tiny.toml: key 'python': string should match pattern '^3\\.[0-9]+$'; given: '2.7'"),
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
        ('"1.1.0"', '"1.2.0+cu100"', "tiny.toml: promises torch 1.2.0+cu100, but tiny.lock pins 1.1.0"),
        (
            "docker.io/library/python:3.6.15-slim-bullseye",
            "python:3.6",
            "tiny.toml: key 'base.reference': string should match pattern "
            "'^[a-z0-9.-]+(:[0-9]+)?/[a-z0-9._/-]+:[A-Za-z0-9_.-]+$'; given: 'python:3.6'",
        ),
        (
            "[promises]",
            'digest = "sha256:abc"\n[promises]',
            "tiny.toml: key 'base.digest': string should match pattern '^(sha256:[0-9a-f]{64})?$'; given: 'sha256:abc'",
        ),
        ("title =", "pins = []\ntitle =", "tiny.toml: key 'pins' is not allowed in this file; remove it"),
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


def test_an_environment_with_an_engine_in_its_name_is_the_same_made_by_that_engine(tmp_path: Path) -> None:
    plain = environment(tmp_path)
    named = find_environment(tmp_path, "tiny.venv")
    assert named is not None
    assert (named.name, named.engine, plain.engine) == ("tiny.venv", "venv", "")
    assert named.spec_id("template") == plain.spec_id("template")
    settings = Settings(engine="host", cache=tmp_path)
    engines = Engines(settings, Checkout())
    assert [engines.chosen_for(each).name for each in (plain, named)] == ["host", "venv"]
    assert find_environment(tmp_path, "tiny.auto") is None
    assert [without_engine(name) for name in ("tiny.venv", "host", "torch2.5-cu124")] == [
        "tiny",
        "host",
        "torch2.5-cu124",
    ]
    with pytest.raises(UserError, match=r"unknown environment 'tiny.vnv'; did you mean 'tiny'"):
        named_environments(tmp_path, ("tiny.vnv",))


def test_the_spec_id_follows_lock_base_promises_and_template(tmp_path: Path) -> None:
    first = environment(tmp_path)
    reference = first.spec_id("template")
    assert reference == environment(tmp_path).spec_id("template")
    others = [
        first.spec_id("other template"),
        environment(tmp_path, lock=LOCK.replace(B, A)).spec_id("template"),
        environment(tmp_path, lock=LOCK.replace("1.16.6", "1.16.5")).spec_id("template"),
        environment(tmp_path, lock=LOCK.replace("\n", FILE, 1)).spec_id("template"),
        environment(tmp_path, lock=LOCK.replace("\n", FILE.replace("123", "124"), 1)).spec_id("template"),
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
        ("title =", 'default = ["cpu"]\ntitle ='),
        ("title =", 'indexes = ["https://example.net/simple"]\ntitle ='),
        ("title =", 'origins = "where it is"\ntitle ='),
        ("title =", 'requires = ["torch"]\ntitle ='),
        ("[base]", '[urls]\ntorch = ["https://example.net/torch.whl"]\n[base]'),
        ("[base]", "[expect]\nbuild_s = 1.0\n[base]"),
    ):
        assert environment(tmp_path, VALID.replace(old, new, 1)).spec_id("template") == reference, new
    commented = LOCK.replace("\n", "  # via nothing\n", 1)
    assert environment(tmp_path, lock=commented).spec_id("template") == reference


def test_the_spec_id_follows_what_an_image_says_of_cuda_and_not_what_we_know_of_its_code(tmp_path: Path) -> None:
    cuda = '[cuda]\ntoolkit = "10.0"\nmin_driver = "410.48"\nnative = ["3.5", "7.5"]\n'
    reference = environment(tmp_path, VALID + cuda).spec_id("template")
    assert environment(tmp_path, VALID + cuda.replace("7.5", "7.0")).spec_id("template") == reference
    for old, new in (("410.48", "410.49"), ("10.0", "10.1")):
        assert environment(tmp_path, VALID + cuda.replace(old, new)).spec_id("template") != reference, new


def test_the_lock_hash_does_not_follow_the_order_of_lines(tmp_path: Path) -> None:
    turned = "\n".join(reversed(LOCK.splitlines()))
    assert environment(tmp_path, lock=turned).lock_sha256 == environment(tmp_path).lock_sha256
    for changed in (LOCK.replace(B, A), LOCK.replace("\n", FILE, 1)):
        assert environment(tmp_path, lock=changed).lock_sha256 != environment(tmp_path).lock_sha256


def test_without_names_the_default_ones_are_chosen_and_a_name_always_works(tmp_path: Path) -> None:
    environment(tmp_path)
    assert default_environments(tmp_path, "cpu") == ()
    assert [one.name for one in named_environments(tmp_path, ("tiny",))] == ["tiny"]
    environment(tmp_path, 'default = ["cpu", "cuda"]\n' + VALID)
    assert [one.name for one in default_environments(tmp_path, "cpu")] == ["tiny"]


def test_the_default_environments_are_those_of_this_machine_and_all_where_it_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "images").mkdir()
    for name, machine in (("here", "x86_64"), ("there", "aarch64")):
        (tmp_path / name).mkdir()
        environment(tmp_path / name, f'default = ["cpu"]\nmachine = "{machine}"\n' + VALID)
        for file in ("tiny.toml", "tiny.lock"):
            target = tmp_path / "images" / file.replace("tiny", name)
            (tmp_path / name / file).rename(target)
    for machine, chosen in (("x86_64", ["here"]), ("aarch64", ["there"]), ("riscv64", ["here", "there"])):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        assert [each.name for each in default_environments(tmp_path / "images", "cpu")] == chosen


def test_an_unknown_environment_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    environment(tmp_path)
    with pytest.raises(UserError) as caught:
        named_environments(tmp_path, ("tinny",))
    assert str(caught.value) == "unknown environment 'tinny'; did you mean 'tiny'? known: tiny"


DEBIAN = """
[apt]
packages = ["libnccl2=2.4.2-1+cuda10.0", "python3.6"]
[apt.repositories.nvidia]
uris = ["https://one.example/ubuntu1804/", "https://two.example/ubuntu1804"]
key = "EB693B3035CD5710E231E123A4B469963BF863CC"
key_urls = ["https://one.example/ubuntu1804/key.pub"]
"""
NCCL = f"libnccl2=2.4.2-1+cuda10.0 --hash=sha256:{A} --from=nvidia/./libnccl2_2.4.2-1+cuda10.0_amd64.deb --bytes=7\n"
PYTHON = f"python3.6=3.6.9-1 --hash=sha256:{B} --from=nvidia/pool/p/python3.6_3.6.9-1_amd64.deb\n"


def with_debs(folder: Path, lock: str, text: str = DEBIAN) -> Environment:
    apt_lock(folder / "tiny.toml").write_text(lock, encoding="utf-8")
    return environment(folder, VALID + text)


def test_debian_packages_are_locked_beside_and_looked_for_in_every_copy_of_their_repository(tmp_path: Path) -> None:
    found = with_debs(tmp_path, f"# a comment\n{NCCL}{PYTHON}")
    nccl, python = found.debs
    assert (nccl.file, nccl.sha256, nccl.size_bytes) == ("libnccl2_2.4.2-1+cuda10.0_amd64.deb", A, 7)
    assert nccl.urls == (
        "https://one.example/ubuntu1804/libnccl2_2.4.2-1+cuda10.0_amd64.deb",
        "https://two.example/ubuntu1804/libnccl2_2.4.2-1+cuda10.0_amd64.deb",
    )
    assert python.urls[0] == "https://one.example/ubuntu1804/pool/p/python3.6_3.6.9-1_amd64.deb"
    assert python.size_bytes is None
    assert found.open == ()


def test_a_promise_may_have_a_label_that_the_index_leaves_out(tmp_path: Path) -> None:
    labelled = environment(tmp_path, VALID.replace('"1.1.0"', '"1.1.0+cu100"'))
    assert labelled.promises["torch"] == "1.1.0+cu100"


def test_without_a_lock_what_is_asked_of_apt_is_open(tmp_path: Path) -> None:
    assert environment(tmp_path, VALID + DEBIAN).open == ("libnccl2=2.4.2-1+cuda10.0", "python3.6")


def test_a_hash_that_is_not_known_yet_is_written_open(tmp_path: Path) -> None:
    lock = LOCK.replace(A, "open")
    assert environment(tmp_path, lock=lock).open == ("torch==1.1.0",)
    assert environment(tmp_path, lock=lock).lock_sha256 != environment(tmp_path).lock_sha256


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        (
            "libnccl2\n",
            "tiny.apt.lock:1: expected 'name=version --hash=sha256:… --from=repository/path', got 'libnccl2'",
        ),
        (NCCL.replace(A, "abc"), "tiny.apt.lock:1: 'libnccl2' has no --hash=sha256:<64 hexadecimal digits>; "),
        (NCCL.replace("--bytes", "--size"), "tiny.apt.lock:1: unknown option '--size'; known: --hash, --from, --bytes"),
        (NCCL.replace("nvidia/", "other/"), "is no <repository>/<path>.deb; repositories of the spec: nvidia"),
        (NCCL.replace(".deb", ".rpm"), "is no <repository>/<path>.deb; repositories of the spec: nvidia"),
        (
            NCCL.replace("/libnccl2_2.4.2", "/libnccl2_2.4.2$(id)"),
            "_amd64.deb' is no name of a Debian package of libnccl2",
        ),
        (NCCL.replace("/libnccl2_", "/other_"), "_amd64.deb' is no name of a Debian package of libnccl2"),
        (NCCL.replace("/libnccl2", "/\x1b[2Jlibnccl2"), "tiny.apt.lock:1: expected 'name=version --hash"),
        (NCCL.replace("=2.4.2", "=٢.4.2"), "tiny.apt.lock:1: expected 'name=version --hash=sha256:… --from"),
        (NCCL + NCCL, "tiny.apt.lock:2: 'libnccl2' is pinned twice; keep one line"),
        ("# nothing\n", "tiny.apt.lock: the lock pins nothing"),
        (NCCL, "the spec asks for python3.6, the lock pins nothing of that name: run `invoke lock` again"),
        (
            NCCL.replace("2.4.2-1", "2.4.8-1") + PYTHON,
            "the spec asks for libnccl2=2.4.2-1+cuda10.0, the lock pins 2.4.8-1+cuda10.0: run `invoke lock` again",
        ),
    ],
)
def test_a_wrong_lock_of_debian_packages_is_said_with_its_line(tmp_path: Path, lock: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        with_debs(tmp_path, lock)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "[base]",
            'requires = ["torch=1.1"]\n[base]',
            "key 'requires[0]': 'torch=1.1' is no requirement as pip has them",
        ),
        ("[promises]", 'copies = ["other.example/python:3.6"]\n[promises]', "'base.copies' need 'base.digest'"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in message(tmp_path, VALID.replace(old, new, 1))


def test_a_key_is_given_with_the_place_it_can_be_had_from(tmp_path: Path) -> None:
    lonely = DEBIAN.replace('key_urls = ["https://one.example/ubuntu1804/key.pub"]\n', "")
    with pytest.raises(UserError, match="'key' and 'key_urls' go together"):
        with_debs(tmp_path, NCCL + PYTHON, lonely)


def test_the_table_of_gpus_and_drivers_is_no_environment(tmp_path: Path) -> None:
    (tmp_path / "compatibility.toml").write_text("", encoding="utf-8")
    environment(tmp_path)
    assert list(known_environments(tmp_path)) == ["tiny"]
