"""What every command does first: errors of one line, no notices of libraries."""
