"""Runs and reports a study: does end-task aware training pay, when, and with which settings."""
