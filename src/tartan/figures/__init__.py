"""Draws task weights, and defines the look of all figures."""
