"""Explanations of the numbers of workloads. An explanation is a module or folder with the name of its workload."""
