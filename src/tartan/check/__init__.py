"""Checks a run's data and costs before it is started: `python -m src.check`."""
