"""What the tables hold, before they are text: the paper's, and one a comparison."""
