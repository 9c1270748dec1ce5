"""All claims at a glance: a row for each environment, a letter for each claim."""

from collections.abc import Sequence

from tsuishi.base.language import in_language, t
from tsuishi.report.parts.blocks import Strip, StripCell
from tsuishi.report.sections.claim_words import TONES
from tsuishi.report.sections.highlighted_claims import CLAIMS
from tsuishi.specs.claims import Claim, Verdict
from tsuishi.verdicts.judge import Judgement

# The letter of each verdict. Of several verdicts in an environment (of its protocols) the first in this order counts.
_LETTERS: dict[Verdict, str] = {
    "contradicted": "C",
    "reproduced": "R",
    "direction only": "D",
    "inconclusive": "?",
    "not tested": "·",
}


def strip(judgements: Sequence[Judgement], environments: Sequence[str]) -> Strip | None:
    """The strip; None where there is no claim."""
    claims: dict[tuple[str, str], Claim] = {(each.source, each.claim.id): each.claim for each in judgements}
    if not claims:
        return None
    sources = dict.fromkeys(source for source, _ in claims)
    groups = tuple((name, tuple(_short(claim) for source, claim in claims if source == name)) for name in sources)
    verdicts: dict[tuple[str, str, str], list[Verdict]] = {}
    for each in judgements:
        for environment in each.subject.environments if each.subject else environments:
            verdicts.setdefault((each.source, each.claim.id, environment), []).append(each.verdict)
    rows = tuple(
        (name, tuple(_cell(claim, verdicts.get((*key, name), [])) for key, claim in claims.items()))
        for name in environments
    )
    legend = tuple(StripCell(letter, TONES[verdict], t(verdict)) for verdict, letter in _LETTERS.items())
    return Strip(t("All claims, environment by environment"), groups, rows, legend, CLAIMS)


def _short(name: str) -> str:
    """The name of a claim in a narrow column: "b…" for "b-distinct"."""
    first, dash, _ = name.partition("-")
    return f"{first}…" if dash else name


def _cell(claim: Claim, verdicts: Sequence[Verdict]) -> StripCell:
    verdict: Verdict = next((each for each in _LETTERS if each in verdicts), "not tested")
    return StripCell(
        _LETTERS[verdict], TONES[verdict], t("{claim}: {verdict}", claim=in_language(claim.text), verdict=t(verdict))
    )
