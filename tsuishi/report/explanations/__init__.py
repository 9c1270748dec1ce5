"""What explains the numbers of one workload, in words. A folder or a module for each workload."""
