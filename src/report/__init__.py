"""From a folder of runs to tables, p-values, figures and one page."""
