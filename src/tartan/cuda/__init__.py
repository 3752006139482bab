"""Attention within packed rows on a GPU; torch computes everything else."""
