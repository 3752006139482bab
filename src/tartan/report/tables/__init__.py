"""Makes the contents of tables: the paper's, and one for each comparison."""
