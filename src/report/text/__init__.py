"""Writes tables as Markdown, LaTeX and CSV."""
