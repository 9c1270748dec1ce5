"""Engines make and enter environments: their interface, the virtual environments, and the host."""
