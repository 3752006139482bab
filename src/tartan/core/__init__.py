"""One training step: gradients of tasks, the meta head, and the weightings that combine them.

Read `tartan.core.weighting.meta` first: it is Algorithm 1. Its `mix` asks a `Step` (`step.py`) for
gradients (`body.py`), which `passes.py` computes, and mixes them one at a time (`mixture.py`).
"""
