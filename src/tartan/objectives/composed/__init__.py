"""Objectives composed of a transform, a representation and an output (AANG)."""
