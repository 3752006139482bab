"""Reads run folders: finished runs, their settings, and the progress of sweeps."""
