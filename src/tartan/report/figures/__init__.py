"""Figures of a report, one in each file."""
