"""Two sets of values, a seed each: how far apart, and how sure that is."""
