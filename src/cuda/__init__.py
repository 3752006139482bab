"""Attention within packed rows on a GPU; all else there is torch's own."""
