"""Tools for developing Rookery itself; not part of the package."""
