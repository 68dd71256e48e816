"""Tasks: a graph of epics, tasks and subtasks with inherited context and learnings."""
