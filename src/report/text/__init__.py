"""Tables as Markdown, LaTeX and CSV."""
