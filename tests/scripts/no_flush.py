"""No flush, and nothing about time is printed: only what begins and what ends."""

import time

for number in (1, 2, 3):
    print("begin", number)
    time.sleep(0.2)
    print("end", number)
