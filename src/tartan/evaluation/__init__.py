"""Computes metrics of the end task, on whole splits and on their unseen examples."""
