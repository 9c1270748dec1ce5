"""Explanations: what is special to the numbers of one workload. An explanation is a module or folder named after it."""
