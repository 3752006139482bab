"""Reads end tasks and auxiliary texts, tokenises them and makes batches of them."""
