"""CITATION.cff: how to cite an archive, in the Citation File Format 1.2, which repositories read.

YAML holds JSON, so every text is written as a JSON string, and no further package is needed.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from tsuishi.base.errors import UserError

_AUTHOR = re.compile(r"(?P<name>[^<>]+?)\s*(?:<(?:https://orcid\.org/)?(?P<orcid>\d{4}-\d{4}-\d{4}-\d{3}[\dX])>)?")


class Author(NamedTuple):
    """An author. `given` is empty for an organisation, and for whoever has one name; `orcid` is empty or a URL."""

    family: str
    given: str
    orcid: str

    @property
    def name(self) -> str:
        """The name, given name first."""
        return f"{self.given} {self.family}".strip()


def authors_of(texts: Sequence[str]) -> tuple[Author, ...]:
    """The authors that the setting `authors` names: "Lovelace, Ada <0000-0002-1825-0097>", the id may be left out.

    Raises UserError for another text.
    """
    return tuple(map(_author, texts))


def _author(text: str) -> Author:
    match = _AUTHOR.fullmatch(text.strip())
    if not match:
        raise UserError(f"tsuishi.authors: expected 'Family, Given <ORCID>'; given: {text}")
    family, _, given = match["name"].partition(",")
    return Author(family.strip(), given.strip(), f"https://orcid.org/{match['orcid']}" if match["orcid"] else "")


def citation(title: str, abstract: str, authors: Sequence[Author], licence: str, date: str) -> bytes:
    """The text of a CITATION.cff. licence: an SPDX id, or empty; date: as 2026-11-21."""
    lines = [
        "cff-version: 1.2.0",
        f"message: {json.dumps('If you use these results, please cite them as below.')}",
        "type: dataset",
        f"title: {json.dumps(title)}",
        f"abstract: {json.dumps(abstract)}",
        f"date-released: {json.dumps(date)}",
        *([f"license: {json.dumps(licence)}"] if licence else []),
        "authors:",
        *(line for author in authors for line in _lines(author)),
    ]
    return ("\n".join(lines) + "\n").encode()


def _lines(author: Author) -> list[str]:
    fields = {"family-names": author.family, "given-names": author.given} if author.given else {"name": author.family}
    if author.orcid:
        fields["orcid"] = author.orcid
    return [
        f"{'  ' if number else '- '}{key}: {json.dumps(value)}" for number, (key, value) in enumerate(fields.items())
    ]
