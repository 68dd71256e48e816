"""A short show of the main job, for people who have just installed Rookery."""
