"""A run handed over: archives of runs, their verification and their signatures."""
