"""Trials, measured: order, rounds, records of each; resumed runs."""
