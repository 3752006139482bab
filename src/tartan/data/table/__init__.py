"""Reads tables in files and on the Hub row by row, whatever their format."""
