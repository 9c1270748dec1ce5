"""`python -m tests.resume_bench ROOT CACHE`: the latest run of the bench resumed with every line of input.

A line of standard error says that it is ready, then of each time how it went.
"""

import sys
from pathlib import Path

from tests.run.test_runner import session
from tsuishi.base.errors import UserError
from tsuishi.run.resume import resume

if __name__ == "__main__":
    print("ready", file=sys.stderr)
    for _ in sys.stdin:
        try:
            resume(session(Path(sys.argv[1]), cache=Path(sys.argv[2])))
            print("resumed", file=sys.stderr)
        except UserError as error:
            print(error, file=sys.stderr)
