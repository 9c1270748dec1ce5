"""Verdicts on published claims, and answers to the questions of a run, from the numbers of runs."""
