"""The numbers that follow from samples, with intervals. Pure functions."""
