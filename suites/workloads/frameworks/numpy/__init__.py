"""NumPy and SciPy: the references for all frameworks, and the SciPy program that source conv2d-gce ran."""
