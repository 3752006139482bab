"""Is one setting better than another, by how much, and how sure is that?"""
