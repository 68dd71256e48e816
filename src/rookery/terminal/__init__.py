"""The terminal that interactive agents run in: tmux."""
