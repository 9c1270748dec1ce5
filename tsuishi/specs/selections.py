"""Selections: values by axis, as claims, questions and pictures name the cases that they are about.

A case that gives no value on an axis has the usual value there. So has a selection: where it does not name an axis
whose usual value goes without saying, it selects the cases with the usual value alone. So a claim about the source's
experiment is not judged on an intervention that its suite makes too.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BeforeValidator, PrivateAttr, ValidationInfo

from tsuishi.base import toml
from tsuishi.base.errors import unknown
from tsuishi.specs.axes import Values
from tsuishi.specs.case import Value
from tsuishi.specs.environment import framework_problem
from tsuishi.specs.vocabulary import Vocabulary

# Select cases by their environment: by its framework, or by its name. They are no axes of a case.
FRAMEWORK, ENVIRONMENT = "framework", "environment"
OF_ENVIRONMENTS = (FRAMEWORK, ENVIRONMENT)
_NONE: Mapping[str, Value] = MappingProxyType({})


def _as_selection(value: Any, info: ValidationInfo) -> Any:
    """Raises ValueError for an axis or a value that the vocabulary (the context of the validation) does not have."""
    words: Vocabulary | None = info.context
    if not words or not isinstance(value, dict):
        return value
    for name, chosen in value.items():
        if name not in (*OF_ENVIRONMENTS, *words.axes):
            raise ValueError(str(unknown("axis", name, (*OF_ENVIRONMENTS, *words.axes))))
        for item in chosen if isinstance(chosen, list | tuple) else [chosen]:
            if name not in OF_ENVIRONMENTS:
                words.check({name: item})
            elif name == FRAMEWORK and (problem := framework_problem(item)):
                raise ValueError(problem)
            elif name == FRAMEWORK and words.frameworks and item not in words.frameworks:
                raise ValueError(str(unknown(name, item, words.frameworks)))
    return value


# Values by axis. It selects the cases whose value is listed, on every axis of the selection.
Selection = Annotated[dict[str, Values], BeforeValidator(_as_selection)]


class Selector:
    """Says of cases whether each of some selections selects them. To make it once for many cases takes less time.

    usual: the values that go without saying, by axis; None: cases usually do not state the axis. free: axes on which
    any value will do where no selection names them. partial: an axis that a case does not state matches any value, as
    in the numbers of sources.

    >>> selects = Selector({"devices": (4,)}, usual={"warmed": "none"})
    >>> selects({"devices": 4}), selects({"devices": 4, "warmed": "device"})
    (True, False)
    """

    def __init__(
        self,
        *selections: Selection,
        usual: Mapping[str, Value | None] = _NONE,
        free: Collection[str] = (),
        partial: bool = False,
    ) -> None:
        named = {*free, *(axis for selection in selections for axis in selection)}
        # The axis, the values that are selected, and the value of a case that does not state the axis.
        self._named = [
            (axis, (*values, None) if partial else values, None if partial else usual.get(axis))
            for selection in selections
            for axis, values in selection.items()
        ]
        self._usual = [(axis, value) for axis, value in usual.items() if axis not in named]

    def __call__(self, axes: Mapping[str, Any]) -> bool:
        """axes: the values of a case by axis, and its framework."""
        for axis, values, otherwise in self._named:
            if axes.get(axis, otherwise) not in values:
                return False
        return all(axes.get(axis, value) == value for axis, value in self._usual)


class Selecting(toml.Spec):
    """Base of objects that select cases; the context of its validation is the vocabulary of the checkout."""

    _usual: Mapping[str, Value | None] = PrivateAttr(default_factory=dict)

    def model_post_init(self, context: Any) -> None:
        """`context` is the vocabulary, or None: then no value goes without saying."""
        self._usual = context.usual if context else {}
