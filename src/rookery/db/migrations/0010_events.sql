-- Questions about events cost what they answer, however many events there are.

-- What went wrong is found by itself: almost every event of an agent tells of something that went well.
ALTER TABLE events ADD COLUMN is_error INTEGER NOT NULL DEFAULT 0;
UPDATE events SET is_error = 1 WHERE type IN ('turn.lost', 'merge.failed');
UPDATE events SET is_error = 1 WHERE type = 'turn.ended' AND json_extract(data, '$.ok') = 0;
UPDATE events SET is_error = 1 WHERE type >= 'agent.' AND type < 'agent/'
    AND coalesce(json_extract(data, '$.set.outcome'), json_extract(data, '$.outcome')) IN ('crashed', 'failed');
CREATE INDEX events_of_errors ON events (seq) WHERE is_error = 1;
CREATE INDEX events_of_errors_by_actor ON events (actor) WHERE is_error = 1;
CREATE INDEX events_of_errors_by_subject ON events (subject) WHERE is_error = 1;

DROP INDEX events_by_actor;
CREATE INDEX events_by_actor ON events (actor, type);

-- The latest time of all events up to a number, about every 100 events. All events before the first one since some time
-- are left out by it, also if a clock was set back; an index of times would have to be read from there to its end.
CREATE TABLE event_times (
    latest TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (latest, seq)
) WITHOUT ROWID;
INSERT INTO event_times (latest, seq)
    SELECT max(latest) OVER (ORDER BY last), last
    FROM (SELECT max(at) AS latest, max(seq) AS last FROM events GROUP BY seq / 100);
DROP INDEX events_by_time;
