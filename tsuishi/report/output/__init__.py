"""A report as files: HTML, Markdown, JSON, CSV, and pictures."""
