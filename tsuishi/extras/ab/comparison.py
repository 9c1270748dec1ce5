"""The suite that runs both sides in turns, and the claims that its report judges: the second side is not slower."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from tsuishi.base import files
from tsuishi.extras.ab import launcher
from tsuishi.extras.ab.sides import NAMES, Side
from tsuishi.extras.scripts.proposals import Proposal, suite_text
from tsuishi.specs.case import PROTOCOL, SUITE
from tsuishi.specs.experiment import Experiment, ExperimentFile
from tsuishi.specs.quantities import is_unit_of_rate
from tsuishi.specs.questions import LastLook
from tsuishi.specs.selections import ENVIRONMENT

SUITE_NAME = SOURCE = "ab"
# The trials of each side after which a number stays undecided.
MOST_TRIALS: LastLook = 96
SIDE = "side"
_SIDES_FILE, _LITERAL = "sides.json", "literal"


@dataclass(frozen=True)
class Comparison:
    """What a call compares. folder: of the suite. numbers: the file that the command writes; empty for none."""

    sides: Sequence[Side]
    command: Sequence[str]
    numbers: str
    limit: float
    folder: Path

    @property
    def by_environment(self) -> bool:
        """Whether the sides are environments."""
        return bool(self.sides[0].environment)

    def experiment(self, private: Path, *, lines: bool) -> Experiment:
        """The launcher, written with its file into the folder. private: see `write_private`; lines: see launcher.py."""
        home = self.folder / SUITE_NAME
        home.mkdir(parents=True, exist_ok=True)
        known = {"command": [*self.command], "numbers": self.numbers, "lines": lines, "private": str(private)}
        (home / _SIDES_FILE).write_text(json.dumps(known, indent=1), encoding="utf-8")
        script = home / Path(launcher.__file__).name
        script.write_bytes(Path(launcher.__file__).read_bytes())
        path = f"{SUITE_NAME}/{_SIDES_FILE}"
        return Experiment(
            script=f"{SUITE_NAME}/{script.name}",
            sha256=files.sha256_of(script),
            command=("python", "{script}", NAMES[0] if self.by_environment else f"{{{SIDE}}}"),
            files=(ExperimentFile(path=path, sha256=files.sha256_of(self.folder / path)),),
        )

    def write_private(self, path: Path, variables: dict[str, str]) -> None:
        """Write the variables of the call and the folders of the sides, for this user alone: no record has them."""
        sides = {
            name: {
                "folder": str(side.folder),
                "command": [*side.command],
                "variables": {**side.variables},
                "environment": side.environment,
            }
            for name, side in zip(NAMES, self.sides, strict=True)
        }
        with files.replacing(path, 0o600) as file:
            json.dump({"variables": variables, "sides": sides}, file)

    def suite(self, experiment: Experiment, proposed: Sequence[Proposal], timeout_s: float, expected_s: float) -> str:
        """The text of the suite: a case for each side, or one case in both environments."""
        document = tomlkit.parse(suite_text(self.title, experiment, proposed, timeout_s))
        document.pop("questions")
        document.add("source", tomlkit.item(SOURCE))
        axes: dict[str, Any] = {PROTOCOL: _LITERAL}
        if not self.by_environment:
            axes[SIDE] = [*NAMES]
            axis = {"values": [*NAMES], "label": "side", "words": "{value}", "chart": "line", "in_name": {}}
            document.add("new_axes", tomlkit.item({SIDE: axis}))
        groups = tomlkit.aot()
        groups.append(tomlkit.item({"axes": axes, "expect": {"quick": {"s": round(expected_s, 3)}}}))
        document.pop("groups")
        document.add("groups", groups)
        return tomlkit.dumps(document)

    def source(self, proposed: Sequence[Proposal]) -> str:
        """The text of the source: a claim for each number, that the second side does not take longer than the limit."""
        claims = [
            {
                "id": claim_id(number),
                "stated": False,
                "last_look": MOST_TRIALS,
                "text": f"{proposal.label}: {self.sides[1].title} is not slower than {self.sides[0].title}.",
                "checks": [
                    {
                        "kind": "order",
                        "quantity": proposal.metric,
                        "case": {SUITE: SUITE_NAME, PROTOCOL: _LITERAL},
                        "of": self._selection(1),
                        "to": self._selection(0),
                        "hold": {"above": 1 / self.limit} if is_unit_of_rate(proposal.unit) else {"below": self.limit},
                        "why": f"More than {self.limit:g} times as long counts as slower.",
                    }
                ],
            }
            for number, proposal in enumerate(proposed)
        ]
        hardware = [{"name": "here", "title": "this machine", "description": "where both sides were compared"}]
        return tomlkit.dumps({"title": self.title, "language": "en", "hardware": hardware, "claims": claims})

    @property
    def title(self) -> str:
        """Both sides, for a reader."""
        return f"{self.sides[1].title} beside {self.sides[0].title}"

    def _selection(self, place: int) -> dict[str, str]:
        return {ENVIRONMENT: self.sides[place].environment} if self.by_environment else {SIDE: NAMES[place]}


def claim_id(number: int) -> str:
    """The id of the claim on a number, by its place."""
    return f"n{number}"
