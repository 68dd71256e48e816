-- A landing that a person forced: of a task that was given up, or of an attempt that a later one replaced.

ALTER TABLE merges ADD COLUMN forced INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_by_branch ON sessions (branch, seq);
