"""Runs one experiment: checks and reads what it needs, trains its stages, writes its folder."""
