"""Makes tables, p-values, figures and one page from a folder of runs."""
