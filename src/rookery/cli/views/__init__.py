"""Views: from an operation's result to blocks for a person. One module a feature."""
