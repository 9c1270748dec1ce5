"""Why the towers of workload conv2d were slow and then fast."""
