"""The JSON argument of an experiment; its errors name what is missing or unknown."""

import frameworks


class Fields(dict):
    """A dict whose errors contain its name, `what`.

    A missing key raises ValueError, which lists the keys that were given.
    """

    def __init__(self, what, values):
        if not isinstance(values, dict):
            raise ValueError("{} must be a JSON object, got {!r}".format(what, values))
        super().__init__(values)
        self.what = what

    def __missing__(self, key):
        raise ValueError("{} lacks '{}'; given: {}".format(self.what, key, ", ".join(sorted(self)) or "nothing"))

    def require_only(self, names):
        """ValueError unless the keys are exactly `names`: an axis that no code reads must not look measured."""
        unknown = sorted(set(self) - set(names))
        if unknown:
            raise ValueError("{} has unknown '{}'; known: {}".format(self.what, unknown[0], ", ".join(names)))
        for name in names:
            self[name]

    def one_of(self, key, known):
        """The value of `key`; ValueError unless `known` contains it."""
        if self[key] not in known:
            raise ValueError("{} '{}' is {!r}; known: {}".format(self.what, key, self[key], ", ".join(map(str, known))))
        return self[key]

    def positive(self, key):
        """The value of `key`; ValueError unless it is an integer of at least 1."""
        value = self[key]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError("{} '{}' is {!r}; it must be a whole number of at least 1".format(self.what, key, value))
        return value


class Request:
    """The request of the host.

    case: {axis: value}. framework: a folder of frameworks/, or None for the first that imports. accelerator: "cpu" or
    "cuda". gpus: how many GPUs the host gave on each node; 0 where it says nothing. settings: how long and how often
    (seconds, steps, counts). budget_s: seconds after which the host would stop the workload, or None. data: `file`
    (path) and `sha256` of a data set, or None. Raises ValueError for a value that is missing or unknown.
    """

    def __init__(self, values):
        values = Fields("request", values)
        self.case = Fields("case", values["case"])
        self.case.pop("suite", None)  # it identifies the case, but no experiment reads it
        self.framework = values.one_of("framework", (*frameworks.names(), None))
        self.accelerator = values.one_of("accelerator", ("cpu", "cuda"))
        self.gpus = values.positive("gpus") if "gpus" in values else 0
        self.settings = Fields("settings", values["settings"])
        self.budget_s = _seconds(values, "budget_s")
        self.data = None if values.get("data") is None else Fields("data", values["data"])


def _seconds(values, key):
    """The value of an optional key in seconds, or None without the key; ValueError unless it is above 0."""
    value = values.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise ValueError("{} '{}' is {!r}; it must be seconds above 0".format(values.what, key, value))
    return float(value)
