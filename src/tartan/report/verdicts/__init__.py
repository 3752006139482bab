"""Compares settings: winners, differences, their certainty, and these in words."""
