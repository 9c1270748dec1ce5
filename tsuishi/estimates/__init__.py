"""Numbers that follow from samples, and their intervals. Pure functions."""
