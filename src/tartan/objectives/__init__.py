"""Objectives of tasks on the shared body, each with its head and its collator."""
