"""The terms of cases: means over trials, with the scatter between trials, between sessions, and within rounds."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from tsuishi.estimates.intervals import InSession, Round, Term, even_walk
from tsuishi.estimates.shared_rounds import two_way_residuals
from tsuishi.estimates.variances import Pool, moderated, pool

_Cell = TypeVar("_Cell")

# Variances between trials are moderated over all cases that agree in these columns.
_POOLED = ["suite", "protocol", "column", "quantity"]


# By (case id, column, quantity).
Terms = Mapping[tuple[str, str, str], Term]
# Suite, protocol, column and quantity, as variances are moderated.
Key = tuple[str, str, str, str]
# By such a key and by case id: the values of the case's trials.
Values = Mapping[Key, dict[str, list[float]]]
# By the keys of Values: the rounds of the values.
Rounds = Mapping[Key, dict[str, list[Round]]]
# A case in an environment: a key of Values, and a case id.
_Place = tuple[Key, str]


def trial_values(estimates: pd.DataFrame) -> Values:
    """The values of trials, from samples.trial_estimates."""
    return _by_case(estimates, estimates["value"].astype("float64").tolist())


def trial_rounds(estimates: pd.DataFrame, rounds: Sequence[Round]) -> Rounds:
    """The rounds of the values of `trial_values`. rounds: of each row."""
    return _by_case(estimates, rounds)


def _by_case(estimates: pd.DataFrame, cells: Sequence[_Cell]) -> dict[Key, dict[str, list[_Cell]]]:
    pools: dict[Key, dict[str, list[_Cell]]] = defaultdict(dict)
    names = [*_POOLED, "case_id"]
    groups = estimates.groupby(names, sort=False).ngroup().to_numpy()  # numbered by the first row of each
    order = np.argsort(groups, kind="stable")
    begins = np.flatnonzero(np.diff(groups[order], prepend=-1))
    firsts = estimates.iloc[order[begins]]
    places, edges = order.tolist(), [*begins.tolist(), len(order)]
    keys = zip(*(firsts[name].tolist() for name in names), edges, edges[1:], strict=False)
    for suite, protocol, column, quantity, case_id, begin, end in keys:
        pools[suite, protocol, column, quantity][case_id] = [cells[place] for place in places[begin:end]]
    return pools


def case_terms(
    values: Values, logarithmic: bool = True, rounds: Rounds | None = None
) -> dict[tuple[str, str, str], Term]:
    """The term of every case, by (case id, column, quantity): of logarithms, or of the values themselves.

    A case with a trial of 0 or less has no term of logarithms. rounds: of the values; None: they are not known.
    """
    groups = {
        (key, case_id): of_case
        for key, of_key in values.items()
        for case_id, of_case in (_logarithms(of_key) if logarithmic else of_key).items()
    }
    known = {place: rounds[place[0]][place[1]][: len(of_case)] for place, of_case in groups.items()} if rounds else {}
    scatter = _moderated(groups, lambda key: (*key, logarithmic))
    within = _scatter_in_rounds(groups, known, scatter, logarithmic)
    return {
        (case_id, *key[2:]): Term(
            math.fsum(of_case) / len(of_case),
            len(of_case),
            scatter[key, case_id],
            _session_means(of_case, known.get((key, case_id), ())),
            frozenset(known.get((key, case_id), ())),
            within.get((key, case_id)),
            pool([of_case]),
            walk=even_walk({*known.get((key, case_id), ())}) if logarithmic else {},
        )
        for (key, case_id), of_case in groups.items()
    }


def _moderated(
    groups: Mapping[_Place, list[float]], family_of: Callable[[Key], Hashable], most_freedom: float = math.inf
) -> dict[_Place, Pool | None]:
    """The variances of groups, moderated over the cases of a key."""
    by_key: dict[Key, dict[str, list[float]]] = defaultdict(dict)
    for (key, case_id), of_case in groups.items():
        by_key[key][case_id] = of_case
    return {
        (key, case_id): variance
        for key, of_key in by_key.items()
        for case_id, variance in moderated(of_key, family_of(key), most_freedom).items()
    }


def _scatter_in_rounds(
    groups: Mapping[_Place, list[float]],
    rounds: Mapping[_Place, list[Round]],
    scatter: Mapping[_Place, Pool | None],
    logarithmic: bool,
) -> dict[_Place, Pool | None]:
    """The moderated variances of the cases of suites and protocols whose rounds have something in common.

    Rounds are those of a suite, protocol and quantity, in all environments.
    """
    every: dict[tuple[str, str, str], dict[_Place, list[float]]] = defaultdict(dict)
    variances = {place: known.variance for place, known in scatter.items() if known}
    for place, of_case in groups.items():
        suite, protocol, _, quantity = place[0]
        # Two trials of a case in a round, as in runs that are not of the same plan, do not tell what it shares.
        if place in variances and len({*rounds.get(place, ())}) == len(of_case):
            every[suite, protocol, quantity][place] = of_case
    pools: dict[_Place, Pool | None] = {}
    for shared, of_suite in every.items():
        if found := two_way_residuals(of_suite, rounds, variances):
            rest, freedom = found
            family = (*shared, logarithmic, "rounds")
            pools |= _moderated(rest, lambda key, family=family: family, freedom)  # type: ignore[misc]
    return pools


def _session_means(values: Sequence[float], rounds: Sequence[Round]) -> dict[str, InSession]:
    """The mean of the values of each session."""
    by_session: dict[tuple[str, str], list[float]] = {}
    for value, each in zip(values, rounds, strict=False):
        by_session.setdefault((each.session, each.day), []).append(value)
    return {
        session: InSession(math.fsum(of_session) / len(of_session), len(of_session), day)
        for (session, day), of_session in by_session.items()
    }


def _logarithms(groups: dict[str, list[float]]) -> dict[str, list[float]]:
    return {case: list(map(math.log, values)) for case, values in groups.items() if min(values) > 0}
