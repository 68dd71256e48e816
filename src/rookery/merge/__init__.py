"""Landing work: gates, candidates, the queue, conflicts, the radar and undo."""
