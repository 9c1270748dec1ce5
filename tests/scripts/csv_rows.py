"""A table as comma-separated values."""

import csv
import sys

writer = csv.writer(sys.stdout)
writer.writerow(["batch", "milliseconds"])
for batch in (1, 2, 4):
    writer.writerow([batch, 10.0 * batch])
