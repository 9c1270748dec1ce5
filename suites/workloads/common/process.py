"""Settings of the process that hold for every experiment; run.py makes them before a framework is imported."""

import os

from common import launch
from common.events import Unsupported


def arrange(settings, framework):
    """Makes the settings of this process, which its threads and children inherit.

    settings: Fields, with `cpus` (the number of CPUs that the process may use, the first of those that it has),
    `variables` ({name of an environment variable: text}) and `read_by` ({axis: frameworks that read its variables}), if
    any. framework: of the request, or None. Raises Unsupported where there are fewer CPUs, where the framework reads
    none of the variables, and in one of several processes on a node.
    """
    if settings and launch.nodes():
        raise Unsupported("settings of the process: a node of several shares its CPUs among its processes")
    for axis, frameworks in settings.get("read_by", {}).items():
        if framework not in (None, *frameworks):
            raise Unsupported("{}: {} does not read it".format(axis, framework))
    os.environ.update(settings.get("variables", {}))
    if "cpus" in settings:
        wanted, usable = settings.positive("cpus"), sorted(os.sched_getaffinity(0))
        if wanted > len(usable):
            raise Unsupported("{} CPUs: this process may use {}".format(wanted, len(usable)))
        os.sched_setaffinity(0, usable[:wanted])
