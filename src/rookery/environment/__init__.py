"""The project's environment: what turns, gates and setup commands get, regardless of who starts them."""
