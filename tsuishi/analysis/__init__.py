"""What the numbers of runs say: estimates, intervals, models, verdicts. No words for readers, no pictures."""
