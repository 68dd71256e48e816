-- Conflicts that are open for a person, each in a worktree of its own. The row is written before the worktree is made
-- and deleted after it is removed, so that a kill in between is followed up.

CREATE TABLE open_conflicts (
    merge_id TEXT PRIMARY KEY REFERENCES merges (id),
    step TEXT NOT NULL,             -- making, ready, closing
    base_commit TEXT NOT NULL,      -- the commit of the base that the result contains
    tip TEXT NOT NULL,              -- the commit of the branch that the result contains
    ours TEXT NOT NULL,             -- what HEAD stands on: the base, or an earlier resolution
    theirs TEXT NOT NULL,           -- what is merged into it: the branch, or an earlier resolution
    files TEXT NOT NULL,            -- the files that were left in conflict, as JSON
    was TEXT NOT NULL,              -- what the entry was, as JSON
    judged TEXT,                    -- the person's last commit that did not land
    accepted TEXT,                  -- the person's commit whose lost lines a person has accepted
    opened_by TEXT NOT NULL,
    opened_at TEXT NOT NULL
);
