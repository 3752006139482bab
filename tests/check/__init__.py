"""Tests of what `tartan check` finds out and advises."""
