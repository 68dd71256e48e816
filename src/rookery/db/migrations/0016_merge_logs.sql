-- What the gate printed that keeps an entry from landing, relative to the project's root.

ALTER TABLE merges ADD COLUMN log TEXT;
