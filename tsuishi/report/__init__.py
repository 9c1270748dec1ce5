"""What a reader sees: findings as sentences, tables and charts, in HTML, Markdown and JSON."""
