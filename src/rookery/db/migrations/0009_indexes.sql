-- Nothing reads through all events, messages or turns to find a few of them. An index ends with the row's `seq`, so what
-- it finds is in order.

CREATE INDEX events_by_type ON events (type);
CREATE INDEX events_by_actor ON events (actor);
CREATE INDEX events_by_subject ON events (subject, type);
CREATE INDEX events_by_time ON events (at);

CREATE INDEX messages_by_session ON messages (session_id, type) WHERE session_id IS NOT NULL;
CREATE INDEX messages_by_branch ON messages (json_extract(payload, '$.branch')) WHERE type = 'merge_ready';
CREATE INDEX messages_by_type ON messages (type);

CREATE INDEX turns_running ON turns (session_id) WHERE state = 'running';
