"""What becomes of a task's work in review: handed in, approved, sent back. Kept for ever, each step for a commit."""
