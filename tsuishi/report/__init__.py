"""What a reader sees: the findings of analysis as sentences, tables and charts, in HTML and Markdown."""
