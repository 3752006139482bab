"""Kernels for training on a CPU; `src.cpu.kernels` puts them into a body and its heads."""
