"""`python -m tests.extras.cluster.submit ROOT [SETTING=VALUE ...]`: a run on Slurm in a process of its own."""

import sys
from pathlib import Path

from tests.extras.cluster.test_slurm_run import on_slurm
from tsuishi.base.errors import EXIT_INTERRUPTED
from tsuishi.run.new_run import run_suite

if __name__ == "__main__":
    try:
        run_suite(on_slurm(Path(sys.argv[1]), **dict(given.split("=", 1) for given in sys.argv[2:])))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
