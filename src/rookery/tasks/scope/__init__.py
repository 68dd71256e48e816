"""What the agent of a branch may change, and the files besides for which there is a reason."""
