"""Matchups: cases that are compared between environments, by a quantity, with the ratios."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import Contrast, Term
from tsuishi.estimates.ratios import best, marked, mean_ratio
from tsuishi.estimates.terms import Terms
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.suite_cases import SuiteCases
from tsuishi.report.parts.wording import is_pace, is_rate
from tsuishi.specs.questions import look_at
from tsuishi.verdicts.evidence import Evidence

# The groups of quantities that cases are compared by, unless an explanation names others. A case is compared by all
# quantities of the first group of which it has a quantity. After these groups come the times and rates that questions
# of its suite ask for, then all times and rates that its suite has.
_QUANTITIES = (("first_run_s", "later_run_s"), ("compute_s",), ("step_s",), ("median_epoch_s",))


class Matchup:
    """The cases of a suite and protocol that are compared by the same quantity, in all their environments.

    `reference` is the first environment in which any of these cases has the quantity.
    """

    def __init__(self, suite_cases: SuiteCases, quantity: str, case_ids: Sequence[str], terms: Terms) -> None:
        self.suite_cases, self.quantity, self.case_ids = suite_cases, quantity, case_ids
        self.rate = is_rate(quantity)
        self.terms: dict[str, dict[str, Term]] = {
            case_id: {
                environment: terms[case_id, environment, quantity]
                for environment in suite_cases.environments
                if (case_id, environment, quantity) in terms
            }
            for case_id in case_ids
        }
        measured = {environment for terms_of_case in self.terms.values() for environment in terms_of_case}
        self.reference = next(name for name in suite_cases.environments if name in measured)
        # The marks of rows, which `matchups` sets: they depend on all rows of a report.
        self.best: dict[str, str | None] = {}

    def ratio(self, case_id: str, environment: str) -> Contrast | None:
        """The logarithm of the environment's ratio to the reference.

        None for the reference itself, and where either environment lacks the quantity.
        """
        terms = self.terms[case_id]
        if environment == self.reference or not {environment, self.reference} <= set(terms):
            return None
        return ratio(terms[environment], terms[self.reference])

    def mean(self, environment: str) -> tuple[Contrast, int] | None:
        """The logarithm of the mean ratio, and the number of its cases; None where no case ran in both environments."""
        both = {environment, self.reference}
        pairs = [(terms[environment], terms[self.reference]) for terms in self.terms.values() if both <= set(terms)]
        return (mean_ratio(pairs), len(pairs)) if pairs else None

    def speeds(self, of: str, over: str) -> list[tuple[Term, Term]]:
        """The terms of each case that has the quantity in both environments; first over second is the speed `of`."""
        both = [(terms[of], terms[over]) for terms in self.terms.values() if {of, over} <= terms.keys()]
        return both if self.rate else [(theirs, ours) for ours, theirs in both]

    @property
    def others(self) -> list[str]:
        return [name for name in self.suite_cases.environments if name != self.reference]


def matchups(evidence: Evidence, every_suite: Iterable[SuiteCases], explanations: Explanations) -> list[Matchup]:
    """The matchups of every suite and protocol: a matchup for each quantity. Their rows have marks."""
    every = list(_matchups(evidence, every_suite, explanations))
    rows = [(matchup, case_id) for matchup in every for case_id in matchup.case_ids]
    marks = marked([best(_at_look(evidence, matchup, case_id), matchup.rate) for matchup, case_id in rows])
    for (matchup, case_id), mark in zip(rows, marks, strict=True):
        matchup.best[case_id] = mark
    return every


def _at_look(evidence: Evidence, matchup: Matchup, case_id: str) -> dict[str, Term]:
    """The terms of a row, by the trials of the last look of all its environments."""
    terms = matchup.terms[case_id]
    look = look_at(min((term.trials for term in terms.values()), default=0))
    of_look = evidence.terms_of_first(look) if look else evidence.terms
    return {environment: of_look[case_id, environment, matchup.quantity] for environment in terms}


def _matchups(evidence: Evidence, every_suite: Iterable[SuiteCases], explanations: Explanations) -> Iterator[Matchup]:
    known = known_quantities(evidence.terms)
    for suite_cases in every_suite:
        for quantity, case_ids in cases_by_quantity(suite_cases, known, explanations).items():
            yield Matchup(suite_cases, quantity, case_ids, evidence.terms)


def known_quantities(*every: Terms) -> dict[str, set[str]]:
    """The quantities of every case that has any, in any environment."""
    known: dict[str, set[str]] = {}
    for terms in every:
        for case_id, _, quantity in terms:
            known.setdefault(case_id, set()).add(quantity)
    return known


def cases_by_quantity(
    suite_cases: SuiteCases, known: Mapping[str, set[str]], explanations: Explanations
) -> dict[str, list[str]]:
    """The cases to compare by each quantity. A case without a time or rate joins the group with the most cases.

    known: the quantities of every case that has any.
    """
    every = {quantity for case_id in suite_cases.case_ids for quantity in known.get(case_id, ())}
    groups = _groups(suite_cases.evidence, suite_cases.suite, explanations, every)
    by_group: dict[tuple[str, ...], list[str]] = {group: [] for group in groups}
    homeless: list[str] = []
    for case_id in suite_cases.case_ids:
        group = next((names for names in groups if known.get(case_id, set()) & {*names}), None)
        (homeless if group is None else by_group[group]).append(case_id)
    most = max(by_group, key=lambda group: len(by_group[group]))
    by_group[most] += homeless
    order = {case_id: place for place, case_id in enumerate(suite_cases.case_ids)}
    return {
        quantity: sorted(case_ids, key=order.__getitem__)
        for group, case_ids in by_group.items()
        for quantity in group
        if any(quantity in known.get(case_id, set()) for case_id in case_ids)
    }


def paced_by(evidence: Evidence, suite: str, explanations: Explanations, every: set[str]) -> tuple[str, ...]:
    """The times and rates by which a case is compared, of all quantities that it has."""
    groups = _groups(evidence, suite, explanations, every)
    return next((found for group in groups if (found := tuple(name for name in group if name in every))), ())


def _groups(evidence: Evidence, suite: str, explanations: Explanations, every: set[str]) -> list[tuple[str, ...]]:
    """The groups of quantities that the cases of a suite are compared by. every: all quantities of these cases.

    The last two groups: times and rates that questions of the suite ask for, then all that its cases have, as a
    script's.
    """
    questions = (question for run in evidence.results.runs.values() for question in run.questions)
    asked = {question.quantity for question in questions if question.suite == suite}
    paces = [quantity for quantity in sorted(every) if is_pace(quantity)]
    first = explanations.of(suite).compared_by or _QUANTITIES
    return [*first, tuple(quantity for quantity in paces if quantity in asked), tuple(paces)]
