"""The front of every command: errors of one line, no notices of libraries."""
