"""The training core: per-task gradients, task weightings, the meta head, one training step.

Nothing in this folder knows of text or of images: a task is an objective, a head and batches.
"""
