"""Progress as Keras 2 shows it: backspaces and a carriage return before each state."""

import sys
import time

for epoch in (1, 2, 3):
    sys.stdout.write(f"Epoch {epoch}/3\n")
    width = 0
    for step in range(1, 5):
        time.sleep(0.01)
        sys.stdout.write("\b" * width + "\r")
        state = "{}/4 [{}] - ETA: 0s - loss: {:.4f}".format(step, "=" * step, 1.0 / step / epoch)
        sys.stdout.write(state)
        width = len(state)
    sys.stdout.write("\b" * width + f"\r4/4 [====] - {epoch}s 11ms/step - loss: {0.25 / epoch:.4f}\n")
