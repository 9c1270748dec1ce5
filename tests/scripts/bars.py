"""A progress bar as tqdm draws: on stderr, over itself."""

import sys
import time

for epoch in (1, 2):
    for done in range(11):
        rate = "?" if done == 0 else f"{100.0 + done:.2f}"
        bar = "█" * done + " " * (10 - done)
        text = f"\rEpoch {epoch}: {10 * done:3d}%|{bar}| {done}/10 [00:0{epoch}<00:00, {rate}it/s]"
        sys.stderr.write(text)
        sys.stderr.flush()
        time.sleep(0.005)
    sys.stderr.write("\n")
