"""One run: its settings, its data, its stages, its folder; and sweeps of runs."""
