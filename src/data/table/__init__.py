"""Tables in files and on the Hub, read row by row, whatever their format."""
