"""Prints as many scripts do: a name, a number, a unit. It reads a file beside it and takes an argument."""

import argparse
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
print("sizes", Path("data/sizes.txt").read_text().strip())
for step in range(parser.parse_args().steps):
    print(f"Step time: {10.5 + step} ms, loss={1 / (1 + step):.3f}")
print("Budget: 1,234 s")
print("Accuracy: 91.5%")
print("Throughput: 1,234.5 images/s")
