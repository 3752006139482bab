"""The contents of tables before they are text: the paper's, and one a comparison."""
