"""`python -m tests.run_bench ROOT [MARK]`: one run of the bench in a process of its own, for tests that kill it.

MARK: the variable by which what its trials started is found later; every run on this machine ends the processes of dead
runners that it finds by the usual variable, the runs of other tests too.
"""

import sys
from pathlib import Path

from tests.run.test_runner import session
from tsuishi.base import owner
from tsuishi.base.errors import EXIT_INTERRUPTED
from tsuishi.run.new_run import run_suite

if __name__ == "__main__":
    if sys.argv[2:]:
        owner.MARK = sys.argv[2]
    try:
        run_suite(session(Path(sys.argv[1])))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
