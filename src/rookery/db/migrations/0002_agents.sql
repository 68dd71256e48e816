-- Agents and their lives, turns, mail, groups, runs, and what turns cost.

CREATE TABLE runs (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    title        TEXT NOT NULL,
    started_by   TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    completed_at TEXT
);

-- One life of a named agent. An ended one stays: it is the agent's history.
CREATE TABLE sessions (
    seq             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    agent           TEXT NOT NULL,
    role            TEXT NOT NULL,
    task_id         TEXT,
    run_id          TEXT NOT NULL,
    parent          TEXT NOT NULL,
    depth           INTEGER NOT NULL,
    runtime         TEXT NOT NULL,
    model           TEXT NOT NULL,
    mode            TEXT NOT NULL,
    profile         TEXT NOT NULL,
    state           TEXT NOT NULL,
    outcome         TEXT,
    reason          TEXT,
    step            TEXT NOT NULL,
    worktree        TEXT NOT NULL,
    branch          TEXT NOT NULL,
    base_commit     TEXT NOT NULL,
    settings        TEXT NOT NULL,
    token_hash      TEXT NOT NULL,
    runner_pid      INTEGER,
    runner_start    TEXT,
    runtime_session TEXT,
    created_at      TEXT NOT NULL,
    updated_at      TEXT NOT NULL,
    active_at       TEXT NOT NULL,
    ended_at        TEXT
);
CREATE UNIQUE INDEX sessions_one_per_agent ON sessions (agent) WHERE state <> 'ended';
CREATE UNIQUE INDEX sessions_one_per_task ON sessions (task_id) WHERE state <> 'ended' AND task_id IS NOT NULL;
CREATE INDEX sessions_by_agent ON sessions (agent, created_at);
CREATE INDEX sessions_by_run ON sessions (run_id, created_at);

CREATE TABLE turns (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    session_id  TEXT NOT NULL REFERENCES sessions (id),
    number      INTEGER NOT NULL,
    cause       TEXT NOT NULL,
    state       TEXT NOT NULL,
    pid         INTEGER,
    pid_start   TEXT,
    exit_status INTEGER,
    last_words  TEXT,
    snapshot    TEXT,
    started_at  TEXT NOT NULL,
    ended_at    TEXT,
    UNIQUE (session_id, number)
);

-- One row a recipient. `turn_id` is the turn that saw it; `read_at` is set only when that turn ended well.
CREATE TABLE messages (
    seq        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    thread_id  TEXT NOT NULL,
    reply_to   TEXT,
    sender     TEXT NOT NULL,
    recipient  TEXT NOT NULL,
    audience   TEXT,
    type       TEXT NOT NULL,
    priority   TEXT NOT NULL,
    subject    TEXT NOT NULL,
    body       TEXT NOT NULL,
    payload    TEXT,
    session_id TEXT,
    turn_id    TEXT,
    created_at TEXT NOT NULL,
    read_at    TEXT
);
CREATE INDEX messages_by_recipient ON messages (recipient, seq);
-- After the one above: where both would do, SQLite takes the younger.
CREATE INDEX messages_unread ON messages (recipient, seq) WHERE read_at IS NULL;
CREATE INDEX messages_by_sender ON messages (sender, seq);
CREATE INDEX messages_by_thread ON messages (thread_id, seq);
CREATE INDEX messages_by_turn ON messages (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE mail_groups (
    name       TEXT NOT NULL,
    member     TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (name, member)
) WITHOUT ROWID;

CREATE TABLE turn_usage (
    turn_id      TEXT NOT NULL REFERENCES turns (id),
    model        TEXT NOT NULL,
    input        INTEGER NOT NULL,
    output       INTEGER NOT NULL,
    cache_read   INTEGER NOT NULL,
    cache_write  INTEGER NOT NULL,
    cost_micros  INTEGER NOT NULL,
    PRIMARY KEY (turn_id, model)
) WITHOUT ROWID;

-- Blocks of ports, each leased to one living session.
CREATE TABLE port_blocks (
    first      INTEGER PRIMARY KEY,
    count      INTEGER NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id)
);
