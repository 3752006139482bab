"""Reads and writes files: durable writes, checksums, bounded reads, escaped text."""
