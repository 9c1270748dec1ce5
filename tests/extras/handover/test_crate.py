"""An archive is a valid RO-Crate and Process Run Crate, as its validator says without a network."""

import json
from pathlib import Path
from typing import Any

import pytest
import requests
import rocrate
from rocrate_validator import services
from rocrate_validator.models import Severity

from tests.extras.handover.archived import files_of, packed, rewritten
from tests.synthetic_run import listed_example
from tsuishi.base.errors import UserError
from tsuishi.extras.handover.archives.archive_description import About
from tsuishi.extras.handover.archives.citation import authors_of, citation
from tsuishi.extras.handover.archives.crate import metadata
from tsuishi.extras.handover.archives.member_names import CRATE, MANIFEST

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
ABOUT = About(
    "Measurements", "What was measured.", authors_of(["Lovelace, Ada <0000-0002-1825-0097>"]), "MIT", "2026-01-02"
)
# What needs an address that tsuishi has not, or that nobody asks of a single person.
NOT_KNOWN = {
    "The Application SHOULD have a url",
    "The SoftwareApplication id SHOULD be an absolute URI",
    "The `publisher` property of a `Root Data Entity` SHOULD be an `Organization`",
    "The author SHOULD have an organizational affiliation.",
    "The author SHOULD have a Contextual Entity which specifies the organizational `affiliation`.",
}


class Shelf(requests.adapters.BaseAdapter):
    """Answers with the terms of RO-Crate that `rocrate` brings, and to nothing else.

    These are of version 1.3, which defines all terms of ours as 1.1 does.
    """

    def send(self, request: requests.PreparedRequest, *given: Any, **more: Any) -> requests.Response:
        answer = requests.Response()
        answer.status_code, answer.request, answer.url = 404, request, request.url or ""
        if request.url == CONTEXT:
            answer.status_code = 200
            answer._content = (Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld").read_bytes()
            answer.headers["Content-Type"] = "application/ld+json"
        return answer

    def close(self) -> None:
        pass


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests.Session, "get_adapter", lambda self, url: Shelf())


def issues(path: Path, severity: Severity) -> list[str]:
    settings = services.ValidationSettings(
        rocrate_uri=str(path),
        profile_identifier="process-run-crate-0.5",
        requirement_severity=severity,
        no_cache=True,
        abort_on_first=False,
    )
    return sorted({str(issue.message) for issue in services.validate(settings).get_issues()})


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    run = listed_example(tmp_path / "20261121-080000-example")
    packed(tmp_path / "archive.zip", [run])
    names = [*files_of(tmp_path / "archive.zip"), MANIFEST]
    return rewritten(tmp_path / "archive.zip", {CRATE: metadata(ABOUT, [run], names)})


def test_an_archive_is_a_valid_crate(archive: Path, shelf: None) -> None:
    assert issues(archive, Severity.REQUIRED) == []


def test_it_has_what_a_crate_should_have(archive: Path, shelf: None) -> None:
    assert set(issues(archive, Severity.RECOMMENDED)) <= NOT_KNOWN


def test_the_validator_finds_what_is_wrong(archive: Path, shelf: None) -> None:
    crate = json.loads(files_of(archive)[CRATE])
    for entity in crate["@graph"]:
        entity.pop("instrument", None)
    wrong = rewritten(archive, {CRATE: json.dumps(crate).encode()})
    said = "The Action MUST have an instrument property that references the executed tool"
    assert said in issues(wrong, Severity.REQUIRED)


def test_a_citation_has_every_author() -> None:
    authors = authors_of(["Lovelace, Ada <https://orcid.org/0000-0002-1825-0097>", 'Analytical: "Society"'])
    text = citation("A title: with a colon", "What.", authors, "CC-BY-4.0", "2026-01-02").decode()
    assert text.splitlines()[-5:] == [
        "authors:",
        '- family-names: "Lovelace"',
        '  given-names: "Ada"',
        '  orcid: "https://orcid.org/0000-0002-1825-0097"',
        '- name: "Analytical: \\"Society\\""',
    ]


def test_an_author_that_is_none_is_refused() -> None:
    with pytest.raises(
        UserError, match=r"tsuishi\.authors: expected 'Family, Given <ORCID>'; given: Ada <mail@example>"
    ):
        authors_of(["Ada <mail@example>"])
