"""Pictures of runs, each in a file of its own."""
