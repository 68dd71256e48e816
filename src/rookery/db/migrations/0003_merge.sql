-- What is to land and has landed, who may land it, what gates said, and which branches meet.

CREATE TABLE merges (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    branch       TEXT NOT NULL,
    base         TEXT NOT NULL,
    tip          TEXT NOT NULL,
    task_id      TEXT,
    agent        TEXT,
    lead         TEXT,
    run_id       TEXT,
    priority     INTEGER NOT NULL,
    state        TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    tier         TEXT,
    strategy     TEXT,
    base_before  TEXT,
    candidate    TEXT,
    kind         TEXT,
    reason       TEXT,
    files        TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL,
    landed_at    TEXT,
    cleaned_at   TEXT
);
CREATE UNIQUE INDEX merges_one_open ON merges (branch, base)
    WHERE state IN ('queued', 'waiting', 'testing', 'landing');
CREATE INDEX merges_open ON merges (base, state) WHERE state IN ('queued', 'waiting', 'testing', 'landing');
CREATE INDEX merges_undoing ON merges (base) WHERE kind = 'undoing';
CREATE INDEX merges_by_branch ON merges (branch, seq);

-- What was done to each file that conflicted. It stays: later merges of the same file learn from it.
CREATE TABLE merge_files (
    seq      INTEGER PRIMARY KEY,
    merge_id TEXT NOT NULL REFERENCES merges (id),
    path     TEXT NOT NULL,
    kind     TEXT NOT NULL,
    tier     TEXT NOT NULL,
    outcome  TEXT NOT NULL,
    why      TEXT NOT NULL,
    hunks    TEXT NOT NULL,
    at       TEXT NOT NULL
);
CREATE INDEX merge_files_by_merge ON merge_files (merge_id, seq);
CREATE INDEX merge_files_by_path ON merge_files (path, seq);

-- Who lands on a base just now. The token grows with every holder, and what is done under an old one is refused.
CREATE TABLE merge_leases (
    base       TEXT PRIMARY KEY,
    token      INTEGER NOT NULL,
    holder     TEXT,
    pid        INTEGER,
    pid_start  TEXT,
    expires_at TEXT
) WITHOUT ROWID;

CREATE TABLE gate_runs (
    seq     INTEGER PRIMARY KEY,
    tree    TEXT NOT NULL,
    command TEXT NOT NULL,
    name    TEXT NOT NULL,
    verdict TEXT NOT NULL,
    status  INTEGER,
    seconds REAL NOT NULL,
    log     TEXT NOT NULL,
    at      TEXT NOT NULL
);
CREATE INDEX gate_runs_by_tree ON gate_runs (tree, command, seq);
CREATE INDEX gate_runs_by_name ON gate_runs (name, seq);

-- What a commit changed since it parted from a base, and whether two commits go together: facts about commits, so
-- they do not grow old.
CREATE TABLE radar_files (
    base  TEXT NOT NULL,
    tip   TEXT NOT NULL,
    files TEXT NOT NULL,
    PRIMARY KEY (base, tip)
) WITHOUT ROWID;
CREATE TABLE radar_pairs (
    one       TEXT NOT NULL,
    other     TEXT NOT NULL,
    conflicts TEXT NOT NULL,
    PRIMARY KEY (one, other)
) WITHOUT ROWID;
CREATE TABLE radar_warnings (
    one    TEXT NOT NULL,
    other  TEXT NOT NULL,
    path   TEXT NOT NULL,
    at     TEXT NOT NULL,
    PRIMARY KEY (one, other, path)
) WITHOUT ROWID;
CREATE TABLE radar_seen (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL
);
