"""The sections of a report, in the order in which they are read."""
