"""Endless output: a line of any length, then lines for ever."""

import sys

sys.stdout.write("x" * 5000000 + "\n")
while True:
    print("still here: nothing to see")
