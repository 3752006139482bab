"""Names, locks, reads and writes run folders, and records sweeps."""
