"""Trains in several processes: shares of batches, sums of gradients, shards of the body."""
