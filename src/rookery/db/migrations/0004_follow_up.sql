-- Whether those whom a landing concerns have been asked to rebase. What landed before is long over.

ALTER TABLE merges ADD COLUMN followed_at TEXT;
UPDATE merges SET followed_at = updated_at WHERE landed_at IS NOT NULL;
CREATE INDEX merges_unfollowed ON merges (base) WHERE state = 'landed' AND followed_at IS NULL;
