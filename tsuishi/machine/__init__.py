"""This machine: its GPUs, disk, interpreters and variables, and the durations of earlier work."""
