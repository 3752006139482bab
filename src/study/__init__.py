"""The study: does end-task aware training pay, when, and what to set."""
