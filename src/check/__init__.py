"""What a run will be trained on, told in seconds: `python -m src.check`."""
