-- The files that a branch changes outside of what its agent may (`rook sling --files`), each with the reason for it.

CREATE TABLE outside_files (
    branch TEXT PRIMARY KEY,
    files  TEXT NOT NULL
);

ALTER TABLE merges ADD COLUMN outside TEXT NOT NULL DEFAULT '[]';
