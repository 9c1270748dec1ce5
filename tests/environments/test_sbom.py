"""The bill of materials: what is in it, by which names and hashes, and that it is the same for the same image."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.bench import REAL
from tsuishi.engines.interface import Built
from tsuishi.environments.sbom import bill_of_materials
from tsuishi.results.facts import Facts
from tsuishi.specs.debian import Deb
from tsuishi.specs.environment import Environment, read_environment

IMAGE_ID = "sha256:" + "1" * 64
DIGEST = "sha256:" + "2" * 64
BASE_ID = "sha256:" + "3" * 64
REPORTED = {
    "python": "3.6.15",
    "packages": {"tensorflow": "1.13.1", "pip": "21.3.1", "left-over": "1"},
    "base_packages": {"pip": "21.2.4"},
    "system_packages": {"libc6:amd64": "2.31-13+deb11u5", "tzdata:all": "2021a-1", "zlib1g:amd64": "1:1.2.11"},
    "os": {"id": "debian", "version_id": "11"},
}


def environment(**changes: Any) -> Environment:
    return read_environment(REAL.images / "tf1.13-cpu.toml").model_copy(update=changes)


def bill(given: Environment | None = None, used: str = "", **reported: Any) -> dict[str, Any]:
    given = given or environment()
    assert given.base is not None
    asked = given.base.reference
    base = {"reference": asked, "used": used or asked, "digest": "unpinned", "image_id": BASE_ID}
    built = Built(given, "docker", "25.0", "5" * 16, IMAGE_ID, ("python",), {"base": base})
    return bill_of_materials(built, Facts.model_validate({**REPORTED, **reported}))


def wrong_in(document: dict[str, Any]) -> Any:
    """What the official schema of CycloneDX says against it; None for nothing."""
    from cyclonedx.schema import SchemaVersion  # it takes seconds, and other processes import this module
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document))


def component(document: dict[str, Any], purl: str) -> dict[str, Any]:
    (found,) = [one for one in document["components"] if one.get("purl") == purl]
    return dict(found)


@pytest.mark.parametrize("reported", [{}, {"os": {}}, {"system_packages": {}, "base_packages": {}, "os": {}}])
def test_it_is_cyclonedx_by_the_official_schema(reported: dict[str, Any]) -> None:
    assert wrong_in(bill(**reported)) is None


def test_the_validator_would_find_something() -> None:
    wrong = {**bill(), "components": [{"type": "library"}]}
    assert wrong_in(wrong) is not None


def test_it_begins_with_what_it_is_and_of_what() -> None:
    document = bill()
    assert list(document)[:3] == ["$schema", "bomFormat", "specVersion"]
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    image = document["metadata"]["component"]
    assert (image["type"], image["name"], image["version"]) == ("container", "tsuishi/tf1.13-cpu", "5" * 16)
    assert {one["name"]: one["value"] for one in image["properties"]} == {
        "tsuishi:image_id": IMAGE_ID,
        "tsuishi:spec_id": "5" * 16,
    }


@pytest.mark.long
def test_the_same_image_gives_the_same_text_in_every_process() -> None:
    code = "import json; from tests.environments.test_sbom import bill; print(json.dumps(bill()))"
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=REAL.root,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(REAL.root)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] == json.dumps(bill()) + "\n"
    assert "timestamp" not in said[0]


def test_a_python_package_has_the_hash_of_the_one_artefact_its_lock_accepts() -> None:
    given = environment()
    document = bill(given)
    (pin,) = [pin for pin in given.pins if pin.name == "tensorflow"]
    found = component(document, "pkg:pypi/tensorflow@1.13.1")
    assert found["hashes"] == [{"alg": "SHA-256", "content": pin.sha256[0]}]
    assert "hashes" not in component(document, "pkg:pypi/left-over@1")
    assert "hashes" not in component(document, "pkg:pypi/pip@21.2.4"), "it came with the base"
    several = environment(pins=tuple(pin for pin in given.pins if pin.name != "pip"))
    assert "hashes" not in component(bill(several), "pkg:pypi/pip@21.3.1")


def test_a_system_package_is_named_with_its_distribution_and_architecture() -> None:
    deb = Deb("libc6", "2.31-13+deb11u5", "d" * 64)
    document = bill(environment(debs=(deb,)))
    found = component(document, "pkg:deb/debian/libc6@2.31-13%2Bdeb11u5?arch=amd64&distro=debian-11")
    assert found["hashes"] == [{"alg": "SHA-256", "content": "d" * 64}]
    assert "hashes" not in component(document, "pkg:deb/debian/tzdata@2021a-1?arch=all&distro=debian-11")
    ubuntu = bill(os={"id": "ubuntu", "version_id": "18.04"})
    assert component(ubuntu, "pkg:deb/ubuntu/zlib1g@1:1.2.11?arch=amd64&distro=ubuntu-18.04")


def test_the_interpreter_is_a_component_that_scanners_know() -> None:
    found = component(bill(), "pkg:generic/python@3.6.15")
    assert found["cpe"] == "cpe:2.3:a:python:python:3.6.15:*:*:*:*:*:*:*"


@pytest.mark.parametrize(
    ("used", "name", "version", "purl"),
    [
        ("", "docker.io/library/python", "3.6.15-slim-bullseye", "pkg:docker/library/python@3.6.15-slim-bullseye"),
        (
            f"nvcr.io/nvidia/tensorflow@{DIGEST}",
            "nvcr.io/nvidia/tensorflow",
            DIGEST,
            f"pkg:docker/nvidia/tensorflow@{DIGEST}?repository_url=nvcr.io",
        ),
        (
            "registry.example.net:5000/python:3.6",
            "registry.example.net:5000/python",
            "3.6",
            "pkg:docker/python@3.6?repository_url=registry.example.net:5000",
        ),
        ("local/python:3.6", "local/python", "3.6", None),
    ],
)
def test_the_base_is_named_as_it_was_used_with_what_was_asked_for_beside(
    used: str, name: str, version: str, purl: str | None
) -> None:
    (found,) = [one for one in bill(used=used)["components"] if one["type"] == "container"]
    assert (found["name"], found["version"], found.get("purl")) == (name, version, purl)
    assert {one["name"]: one["value"] for one in found["properties"]} == {
        "tsuishi:asked": "docker.io/library/python:3.6.15-slim-bullseye",
        "tsuishi:image_id": BASE_ID,
    }
    hashes = [{"alg": "SHA-256", "content": "2" * 64}] if version == DIGEST else None
    assert found.get("hashes") == hashes


def test_the_image_depends_on_everything_in_it() -> None:
    document = bill()
    references = sorted(one["bom-ref"] for one in document["components"])
    assert len(references) == len(set(references)) == 9
    (depends,) = [one for one in document["dependencies"] if one["ref"] == f"image:{IMAGE_ID}"]
    assert sorted(depends["dependsOn"]) == references
