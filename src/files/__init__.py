"""Files that are read and written: whole or not at all, recognised, bounded, harmless."""
