"""One run: what it needs, its stages, and what it leaves in its folder."""
