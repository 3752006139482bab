"""`classifier/README.md`: what a trained classifier is, from what, how good, and for what."""
