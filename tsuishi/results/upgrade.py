"""Upgrades the run.json of an earlier tsuishi when it is read, so that everything after it knows one schema only.

To change the schema, raise `SCHEMA_VERSION` in run_record.py, add the step from the version before, and leave
an archive of the new version among the tests. Files of a run are never rewritten: it holds their digests.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tsuishi.base.errors import UserError
from tsuishi.base.option_table import task_with
from tsuishi.results.run_record import RUN_SUITE, SCHEMA_VERSION

# Takes the content of a run.json to the next version, without `schema_version`.
Step = Callable[[dict[str, Any]], dict[str, Any]]


def _trials_by_their_id(content: dict[str, Any]) -> dict[str, Any]:
    """From schema 1: a trial of the plan has its id under the name that it has in trial.json too."""
    plan = content.get("plan")
    if not isinstance(plan, list):
        return content
    renamed = [{"trial_id": one.get("trial"), **one} if isinstance(one, dict) else one for one in plan]
    return {**content, "plan": renamed}


def _says_its_task(content: dict[str, Any]) -> dict[str, Any]:
    """From schema 2: a search had the options that only a search has; other tasks stood over what they asked."""
    extras, arguments = content.pop("extras", None), content.get("arguments")
    is_search = isinstance(arguments, dict) and "quantity" in arguments
    task, request = next(iter(extras.items()), (RUN_SUITE, {})) if isinstance(extras, dict) else (RUN_SUITE, {})
    return {**content, "task": task_with("quantity") if is_search else task, "request": request}


# By the version that a step begins with: one for each version before SCHEMA_VERSION.
STEPS: Mapping[int, Step] = {1: _trials_by_their_id, 2: _says_its_task}


def upgraded(place: object, content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a run.json in the newest schema. An upgraded one has no seal: its run is reported, not resumed.

    place: the run, for messages. Raises UserError for a later schema, and for a schema that no tsuishi wrote.
    """
    version = content.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version not in {SCHEMA_VERSION, *STEPS}:
        is_later = isinstance(version, int) and version > SCHEMA_VERSION
        why = "a later tsuishi made it: update tsuishi" if is_later else "no tsuishi wrote it"
        raise UserError(f"{place}: run schema {version}, this tsuishi reads up to {SCHEMA_VERSION}; {why}")
    newest = dict(content)
    for step in range(version, SCHEMA_VERSION):
        newest = {**STEPS[step](newest), "schema_version": step + 1, "mac": None}
    return newest
