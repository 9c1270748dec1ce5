"""Matchups: which cases are compared with which, by what, and what follows from it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tsuishi.estimates.intervals import Contrast, Term, Terms, ratio
from tsuishi.estimates.ratios import certain_best, mean_ratio
from tsuishi.report.parts.comparison import Comparison
from tsuishi.report.parts.explanation import Explanations
from tsuishi.report.parts.wording import unit_of
from tsuishi.verdicts.evidence import Evidence

# What cases are compared by, where no explanation says it: a case by all of the first of these of which it has any.
_QUANTITIES = (("first_run_s", "later_run_s"), ("compute_s",), ("step_s",), ("median_epoch_s",))
_RATES = ("FLOP/s", "B/s", "images/s")


class Matchup:
    """The cases of a suite and protocol that are compared by one quantity, in all its environments.

    `reference` is the first environment that has the quantity of any of them.
    """

    def __init__(self, comparison: Comparison, quantity: str, case_ids: Sequence[str], terms: Terms) -> None:
        self.comparison, self.quantity, self.case_ids = comparison, quantity, case_ids
        self.rate = unit_of(quantity) in _RATES
        self.terms: dict[str, dict[str, Term]] = {
            case_id: {
                environment: terms[case_id, environment, quantity]
                for environment in comparison.environments
                if (case_id, environment, quantity) in terms
            }
            for case_id in case_ids
        }
        had = {environment for found in self.terms.values() for environment in found}
        self.reference = next(name for name in comparison.environments if name in had)
        self.best = {case_id: certain_best(found, self.rate) for case_id, found in self.terms.items()}

    def ratio(self, case_id: str, environment: str) -> Contrast | None:
        """The logarithm of its ratio to the reference; None where one of the two lacks it, and of the reference."""
        found = self.terms[case_id]
        if environment == self.reference or not {environment, self.reference} <= set(found):
            return None
        return ratio(found[environment], found[self.reference])

    def mean(self, environment: str) -> tuple[Contrast, int] | None:
        """The logarithm of the mean ratio, and over how many cases; None where no case has both."""
        both = {environment, self.reference}
        pairs = [(one[environment], one[self.reference]) for one in self.terms.values() if both <= set(one)]
        return (mean_ratio(pairs), len(pairs)) if pairs else None

    @property
    def others(self) -> list[str]:
        return [name for name in self.comparison.environments if name != self.reference]


def matchups(evidence: Evidence, comparisons: Iterable[Comparison], explanations: Explanations) -> Iterator[Matchup]:
    """Every suite and protocol, quantity by quantity."""
    known: dict[str, set[str]] = {}
    for case_id, _, quantity in evidence.terms:
        known.setdefault(case_id, set()).add(quantity)
    for comparison in comparisons:
        groups = explanations.of(comparison.suite).compared_by or _QUANTITIES
        by_quantity = _cases_by_quantity(comparison, known, groups)
        for quantity, case_ids in by_quantity.items():
            yield Matchup(comparison, quantity, case_ids, evidence.terms)


def _cases_by_quantity(
    comparison: Comparison, known: Mapping[str, set[str]], groups: Sequence[tuple[str, ...]]
) -> dict[str, list[str]]:
    """The cases to compare by each quantity. A case that has none is with those by which most are compared.

    known: the quantities of every case that has any.
    """
    by_group: dict[tuple[str, ...], list[str]] = {group: [] for group in groups}
    homeless: list[str] = []
    for case_id in comparison.case_ids:
        group = next((one for one in groups if known.get(case_id, set()) & {*one}), None)
        (homeless if group is None else by_group[group]).append(case_id)
    most = max(by_group, key=lambda group: len(by_group[group]))
    by_group[most] += homeless
    order = {case_id: place for place, case_id in enumerate(comparison.case_ids)}
    return {
        quantity: sorted(case_ids, key=order.__getitem__)
        for group, case_ids in by_group.items()
        for quantity in group
        if any(quantity in known.get(case_id, set()) for case_id in case_ids)
    }
