"""The terminal: tmux on a private socket, and nothing else starts it."""
