"""Contract 1: what a workload says while it runs, and the host that listens."""
