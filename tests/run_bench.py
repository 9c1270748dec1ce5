"""`python -m tests.run_bench ROOT`: one run of the bench in a process of its own, for tests that kill it."""

import sys
from pathlib import Path

from tests.run.test_runner import session
from tsuishi.base.errors import EXIT_INTERRUPTED
from tsuishi.run.new_run import run_suite

if __name__ == "__main__":
    try:
        run_suite(session(Path(sys.argv[1])))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
