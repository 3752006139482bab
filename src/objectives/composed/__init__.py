"""Objectives composed of parts (AANG): how a text is changed, how it is read, what is predicted."""
