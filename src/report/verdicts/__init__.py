"""Comparisons of settings: winners, differences, their certainty, and these in words."""
