"""Representations: which positions a position sees, and where a token is predicted."""
