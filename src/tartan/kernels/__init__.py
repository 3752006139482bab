"""Kernels for training; `tartan.kernels.attention.use_kernels` puts them into a body and its heads.

On a CPU: dropout and attention with dropout. On both: packed rows of texts. Where none applies, a
module computes what torch and Transformers compute.
"""
