-- Worktrees that are being taken away: whose process does it, and what is told once the worktree is gone.

CREATE TABLE cleanings (
    path      TEXT PRIMARY KEY,
    agent     TEXT NOT NULL,
    branch    TEXT NOT NULL,
    rescue    TEXT,
    inode     INTEGER,
    actor     TEXT NOT NULL,
    pid       INTEGER NOT NULL,
    pid_start TEXT NOT NULL,
    at        TEXT NOT NULL
) WITHOUT ROWID;
