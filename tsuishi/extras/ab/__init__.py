"""A or B: two versions of a program side by side, and whether the second is slower."""
