"""Tests of `src.check`."""
