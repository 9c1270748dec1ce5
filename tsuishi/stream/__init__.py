"""Contract 1: the events of a running workload, and the host that listens to them."""
