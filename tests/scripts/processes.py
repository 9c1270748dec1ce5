"""Several processes print into the same stream; one of them outlives the script."""

import os
import subprocess
import sys

WORKER = "import sys; print('worker {}: {:.1f} items/s'.format(sys.argv[1], 10.0 * (1 + int(sys.argv[1]))))"
workers = [subprocess.Popen([sys.executable, "-c", WORKER, str(rank)]) for rank in range(3)]
for worker in workers:
    worker.wait()
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("total: 60.0 items/s")
os._exit(0)
