"""Gates: commands that must pass before work lands, and the jobs that run them."""
