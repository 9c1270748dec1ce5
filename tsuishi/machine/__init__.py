"""What is here: GPUs, disk, interpreters, and what earlier work took."""
