"""The project's environment: what turns, gates and setup commands get, whoever starts them."""
