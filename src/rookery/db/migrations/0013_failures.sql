-- From which facts an action that failed had been decided: what was given up is tried again when they have changed.

ALTER TABLE loop_failures ADD COLUMN seen TEXT NOT NULL DEFAULT '';
