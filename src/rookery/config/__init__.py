"""Configuration: typed, layered, and every value knows where it comes from."""
