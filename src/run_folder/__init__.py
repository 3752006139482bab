"""Run folders: their names, locks, results, what they hold already, a sweep's record."""
