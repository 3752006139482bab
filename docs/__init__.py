"""The documentation, and what builds it."""
