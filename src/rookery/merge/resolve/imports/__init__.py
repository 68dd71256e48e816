"""Import statements of the languages that Rookery parses, as sets of names: read, and written again in their style."""
