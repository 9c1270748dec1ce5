"""Explanations: which settings make a number differ from a printed number, measured in all their combinations."""
