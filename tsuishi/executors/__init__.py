"""Executors beside that of this machine: trials are handed to a cluster's scheduler, and gathered."""
