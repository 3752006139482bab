"""Outputs, which decide what is predicted from a text."""
