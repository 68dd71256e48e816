-- What became of a task's work in review, in order: handed in, approved, or sent back with a comment; each for a commit.

CREATE TABLE reviews (
    seq       INTEGER PRIMARY KEY,
    task_id   TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    action    TEXT NOT NULL,
    branch    TEXT,
    commit_id TEXT,
    comment   TEXT NOT NULL,
    actor     TEXT NOT NULL,
    at        TEXT NOT NULL
);
CREATE INDEX reviews_by_task ON reviews (task_id, seq);
