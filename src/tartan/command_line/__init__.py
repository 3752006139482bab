"""Makes every command report errors in one line, and silences libraries."""
