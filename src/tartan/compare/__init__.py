"""Compares every method on one task at equal cost."""
