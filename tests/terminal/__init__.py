"""Tests of the terminal, with the real tmux on a socket of each test's own."""
