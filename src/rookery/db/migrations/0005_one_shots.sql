-- What single prompts to agent programs used, outside of any agent's life, by model.

CREATE TABLE one_shots (
    id          TEXT NOT NULL,
    agent       TEXT NOT NULL,
    role        TEXT NOT NULL,
    cause       TEXT NOT NULL,
    task_id     TEXT,
    run_id      TEXT,
    started_at  TEXT NOT NULL,
    model       TEXT NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    PRIMARY KEY (id, model)
) WITHOUT ROWID;
