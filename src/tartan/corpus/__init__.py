"""A corpus of examples from shards of articles, as large as the paper's domain corpora."""
