"""What everything else stands on: errors, identities, time, records, text and child processes."""
