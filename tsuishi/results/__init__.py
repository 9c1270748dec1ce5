"""Contract 2: the run directory, written and read."""
