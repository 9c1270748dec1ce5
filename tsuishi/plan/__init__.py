"""Plans: the environments, questions and trials of a run, before anything long starts."""
