-- Where the project lies, so that a copied or moved one is recognised. Worktrees, specifications and logs of gates are
-- named relative to its root.

CREATE TABLE location (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    id        TEXT NOT NULL,
    path      TEXT NOT NULL,
    folder    TEXT NOT NULL,
    changed   INTEGER NOT NULL,
    host      TEXT NOT NULL,
    namespace TEXT NOT NULL
);

-- An older project is where its last worktree was made; nothing more is known of it.
INSERT INTO location (one, id, path, folder, changed, host, namespace)
    SELECT 1, '', substr(worktree, 1, length(worktree) - length('/.rookery/worktrees/' || agent)), '', 0, '', ''
    FROM sessions
    WHERE substr(worktree, -length('/.rookery/worktrees/' || agent)) = '/.rookery/worktrees/' || agent
    ORDER BY seq DESC LIMIT 1;

-- Everything before the last `/.rookery/`: a project may lie in another one's worktree.
UPDATE sessions
    SET settings = json_set(settings, '$.spec', substr(json_extract(settings, '$.spec'),
        length(worktree) - length('/.rookery/worktrees/' || agent) + 2))
    WHERE substr(worktree, -length('/.rookery/worktrees/' || agent)) = '/.rookery/worktrees/' || agent
    AND substr(json_extract(settings, '$.spec'), 1, length(worktree) - length('.rookery/worktrees/' || agent))
        = substr(worktree, 1, length(worktree) - length('.rookery/worktrees/' || agent));
UPDATE sessions SET worktree = '.rookery/worktrees/' || agent
    WHERE substr(worktree, -length('/.rookery/worktrees/' || agent)) = '/.rookery/worktrees/' || agent;
UPDATE gate_runs SET log = substr(log, instr(log, '/.rookery/gates/' || substr(tree, 1, 12) || '/') + 1)
    WHERE instr(log, '/.rookery/gates/' || substr(tree, 1, 12) || '/') > 0;
