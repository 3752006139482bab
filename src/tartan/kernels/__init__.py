"""Kernels for training: dropout and attention with it on a CPU, and packed rows of texts.

`tartan.kernels.attention.use_kernels` puts them into a body and its heads.
"""
