"""What the numbers say about published claims and about the questions of a run."""
