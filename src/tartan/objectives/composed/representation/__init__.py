"""Representations, which decide which positions attend to which, and which predict a token."""
