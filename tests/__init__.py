"""Tests; the folders mirror src/."""
