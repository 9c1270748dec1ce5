"""A training that diverges; its bar turns from it/s to s/it."""

import sys

for epoch in range(4):
    for rate in ("1.70it/s", "1.25s/it"):
        sys.stderr.write(f"\r{epoch}/4 [00:00<00:00, {rate}]")
    sys.stderr.write("\n")
    print(f"epoch {epoch}  loss: {'nan' if epoch else '2.31'}")
