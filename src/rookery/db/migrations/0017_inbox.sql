-- What a person has put away in the inbox, and what each of a person's own agent sessions has been shown of their mail.

CREATE TABLE inbox_marks (
    key   TEXT PRIMARY KEY,    -- what waits: its kind, the id of the fact, and the fact's number
    until TEXT,                -- put away until then; without a time for good
    actor TEXT NOT NULL,
    at    TEXT NOT NULL
) WITHOUT ROWID;

-- New for a reader is what came after `upto`, and of what came before `backlog` what the person has not read. Messages
-- that it was shown have a row until all that is new was shown.
CREATE TABLE mail_readers (
    reader  TEXT PRIMARY KEY,
    backlog INTEGER NOT NULL,
    upto    INTEGER NOT NULL,
    seen_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE mail_readings (
    reader TEXT NOT NULL REFERENCES mail_readers (reader) ON DELETE CASCADE,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (reader, seq)
) WITHOUT ROWID;

-- The conditions are those of `mail/store.py` and `inbox/store.py`, word by word.
CREATE INDEX messages_to_answer ON messages (recipient, seq)
    WHERE type IN ('question', 'decision_gate', 'escalation', 'error');
CREATE INDEX sessions_broken ON sessions (agent, seq) WHERE outcome IN ('crashed', 'failed');
CREATE INDEX sessions_by_task ON sessions (task_id, seq) WHERE task_id IS NOT NULL;
CREATE INDEX merges_stuck ON merges (seq) WHERE state IN ('failed', 'waiting');
