"""Run folders as they are read back: finished runs, their settings, how a sweep stands."""
