"""Figures of task weights, and how all figures look."""
