"""Mail: how agents, and the human, talk to each other."""
