"""NumPy and SciPy: what every framework is held to, and the SciPy that source conv2d-gce ran."""
