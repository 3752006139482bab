"""Writes the model card: what a trained classifier is, from what, how good, and for what."""
