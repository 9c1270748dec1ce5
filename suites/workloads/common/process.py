"""Settings of the process that hold for every framework; run.py makes them before a framework is imported."""

import os

from common.events import Unsupported


def arrange(settings):
    """Makes the settings of this process, which its threads and children inherit.

    settings: Fields, with `cpus` (the number of CPUs that the process may use, the first of those that it has) and
    `variables` ({name of an environment variable: text}), if any. Raises Unsupported where there are fewer CPUs.
    """
    os.environ.update(settings.get("variables", {}))
    if "cpus" in settings:
        wanted, usable = settings.positive("cpus"), sorted(os.sched_getaffinity(0))
        if wanted > len(usable):
            raise Unsupported("{} CPUs: this process may use {}".format(wanted, len(usable)))
        os.sched_setaffinity(0, usable[:wanted])
