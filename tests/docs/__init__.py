"""Tests of the documentation and of what generates it."""
