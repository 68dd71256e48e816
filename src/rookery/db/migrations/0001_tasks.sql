-- Tasks, their edges and learnings, and the outbox.

CREATE TABLE tasks (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    parent_id    TEXT REFERENCES tasks (id) ON DELETE CASCADE,
    title        TEXT NOT NULL,
    description  TEXT NOT NULL DEFAULT '',
    context      TEXT NOT NULL DEFAULT '',
    design       TEXT NOT NULL DEFAULT '',
    priority     INTEGER NOT NULL DEFAULT 3 CHECK (priority BETWEEN 1 AND 5),
    state        TEXT NOT NULL DEFAULT 'PENDING',
    result       TEXT,
    assignee     TEXT,
    lease_until  TEXT,
    attempts     INTEGER NOT NULL DEFAULT 0,
    branch       TEXT,
    commit_id    TEXT,
    start_commit TEXT,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL,
    started_at   TEXT,
    completed_at TEXT,
    archived_at  TEXT
);

-- The order in which people and agents see tasks: urgent first, then old first.
CREATE INDEX tasks_by_parent ON tasks (parent_id, priority, created_at, id);
CREATE INDEX tasks_unfinished ON tasks (parent_id, priority, created_at, id)
    WHERE state NOT IN ('COMPLETED', 'CANCELLED') AND archived_at IS NULL;
CREATE INDEX tasks_in_order ON tasks (priority, created_at, id);
CREATE INDEX tasks_by_state ON tasks (state, priority, created_at, id) WHERE archived_at IS NULL;

CREATE TABLE task_blockers (
    task_id    TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    blocker_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    PRIMARY KEY (task_id, blocker_id)
) WITHOUT ROWID;
CREATE INDEX task_blockers_by_blocker ON task_blockers (blocker_id, task_id);

-- The source is kept as it was even when that task is deleted: it says where the knowledge came from.
CREATE TABLE learnings (
    seq            INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    task_id        TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    content        TEXT NOT NULL,
    source_task_id TEXT,
    created_at     TEXT NOT NULL
);
CREATE INDEX learnings_by_task ON learnings (task_id, created_at, id);

CREATE TABLE events (
    seq     INTEGER PRIMARY KEY,
    id      TEXT NOT NULL,
    at      TEXT NOT NULL,
    type    TEXT NOT NULL,
    actor   TEXT NOT NULL,
    subject TEXT NOT NULL,
    data    TEXT NOT NULL
);

-- Words are indexed by the next search, not by every change: an update would cost half again as much. What has changed
-- since is remembered here.
CREATE VIRTUAL TABLE tasks_search USING fts5 (
    title, description, context, result,
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TABLE tasks_unindexed (seq INTEGER PRIMARY KEY);
CREATE TRIGGER tasks_search_insert AFTER INSERT ON tasks BEGIN
    INSERT OR IGNORE INTO tasks_unindexed VALUES (new.seq);
END;
CREATE TRIGGER tasks_search_delete AFTER DELETE ON tasks BEGIN
    INSERT OR IGNORE INTO tasks_unindexed VALUES (old.seq);
END;
CREATE TRIGGER tasks_search_update AFTER UPDATE OF title, description, context, result ON tasks BEGIN
    INSERT OR IGNORE INTO tasks_unindexed VALUES (new.seq);
END;

CREATE VIRTUAL TABLE learnings_search USING fts5 (
    content, content = 'learnings', content_rowid = 'seq', tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER learnings_search_insert AFTER INSERT ON learnings BEGIN
    INSERT INTO learnings_search (rowid, content) VALUES (new.seq, new.content);
END;
CREATE TRIGGER learnings_search_delete AFTER DELETE ON learnings BEGIN
    INSERT INTO learnings_search (learnings_search, rowid, content) VALUES ('delete', old.seq, old.content);
END;
