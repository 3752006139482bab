"""Kernels for training on a CPU; `tartan.cpu.kernels` puts them into a body and its heads."""
