"""Kernels for training on a CPU, put on a body by `src.cpu.kernels`; elsewhere torch's own run."""
