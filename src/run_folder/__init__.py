"""What a run leaves behind: result, step log, pictures, the trained classifier."""
