"""What is done with a project that was copied or moved."""
