"""Every method on one task, at equal cost."""
