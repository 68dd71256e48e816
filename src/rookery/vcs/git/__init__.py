"""Git, through its command line."""
