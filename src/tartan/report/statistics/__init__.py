"""Compares two sets of values, one value for each seed: difference and uncertainty."""
