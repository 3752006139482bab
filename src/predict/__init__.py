"""Labels for texts in files of any size: read in chunks, predicted, written chunk by chunk."""
