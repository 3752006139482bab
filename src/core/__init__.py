"""The training core: passes, task weightings, the meta head, one training step.

Read `src.core.weighting.meta` first: Algorithm 1. It asks `src.core.step` for gradients, which
`src.core.passes` obtains from a `src.core.body`. Nothing in this folder knows of text, of images or
of a machine's kernels: a task is an objective, a head and batches.
"""
