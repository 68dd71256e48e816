-- Who has paused an agent, or works in its place; JSON.

ALTER TABLE sessions ADD COLUMN hold TEXT;
