"""The parts of a report: blocks, columns, the cases of suites, and the words for numbers."""
