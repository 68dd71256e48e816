-- Agents whose `identity.yaml` is older than their last session: it is written after the session's end has been committed.

CREATE TABLE identities_due (
    agent      TEXT PRIMARY KEY,
    session_id TEXT NOT NULL
) WITHOUT ROWID;
