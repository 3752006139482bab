"""Images: the tasks of the paper's appendix A.4, and proof that the core knows no text."""
