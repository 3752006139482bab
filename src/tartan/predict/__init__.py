"""Predicts labels for texts in files of any size, chunk by chunk."""
