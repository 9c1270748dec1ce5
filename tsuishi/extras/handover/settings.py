"""The settings of handing over, beside those of the core."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field

from tsuishi.base import toml
from tsuishi.base.setting_values import absolute, listed


def _authors(value: Any) -> Any:
    """`a;b`, or a list, as a tuple."""
    return listed([part.strip() for part in value.split(";") if part.strip()] if isinstance(value, str) else value)


def _registry(value: str) -> str:
    if value.startswith(("/", "~")):
        return str(absolute(Path(value)))
    if value and not re.fullmatch(r"(https?://)?[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]+)?", value, re.ASCII):
        raise ValueError(
            "expected a registry without user and password, as registry.example.net/tsuishi, or a folder, as "
            f"/srv/environments; given: '{value.rpartition('@')[2]}'"
        )
    return value


class HandoverSettings(toml.Spec):
    """Where environments are shared, and who is cited."""

    # Where built environments are looked for before they are built, and where `export --to registry` puts them: a
    # registry of images, or a folder. Who can read the registry decides what may go there.
    registry: Annotated[str, AfterValidator(_registry)] = ""
    registry_readers: Literal["anybody", "site"] = "anybody"
    # Authors of archives, separated by semicolons: "Family, Given <ORCID>". And the licence of archives, by SPDX.
    authors: Annotated[tuple[str, ...], BeforeValidator(_authors)] = ()
    licence: Annotated[str, Field(pattern=r"^[A-Za-z0-9.+-]*$")] = ""


SETTINGS = HandoverSettings


def of_handover(settings: toml.Spec) -> HandoverSettings:
    """The settings of a session, with the type that has those of this extra."""
    return cast(HandoverSettings, settings)
