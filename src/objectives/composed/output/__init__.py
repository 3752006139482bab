"""Outputs: what is predicted of a text."""
