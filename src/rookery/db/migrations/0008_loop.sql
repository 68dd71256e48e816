-- What the loop needs to know: which ended agents may still have processes, up to which message an agent in a terminal was
-- told that it has mail, and which actions have failed.

ALTER TABLE sessions ADD COLUMN swept_at TEXT;
ALTER TABLE sessions ADD COLUMN nudged INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET swept_at = ended_at WHERE state = 'ended';
CREATE INDEX sessions_unswept ON sessions (id) WHERE state = 'ended' AND swept_at IS NULL;

CREATE TABLE loop_failures (
    key     TEXT PRIMARY KEY,
    count   INTEGER NOT NULL,
    next_at REAL NOT NULL,
    error   TEXT NOT NULL,
    at      TEXT NOT NULL
) WITHOUT ROWID;
