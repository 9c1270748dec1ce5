"""Published tables of others become sources: what their columns hold, which numbers are cases here, and a suite."""
