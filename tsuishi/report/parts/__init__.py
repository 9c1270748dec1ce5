"""The parts of a report: blocks, columns, comparisons, and the words for numbers."""
