"""The Docker engine: environments as images, trials as containers."""
