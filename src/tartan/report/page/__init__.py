"""Makes the report's self-contained HTML page."""
