"""What a report is made of: blocks, columns, comparisons, and how numbers are worded."""
