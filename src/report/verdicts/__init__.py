"""Which setting wins where, by how much, how sure that is, and in words."""
