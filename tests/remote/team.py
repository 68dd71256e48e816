"""Two people with a remote repository between them: ours has a project, the other's is a plain clone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conftest import git
from merge.yard import Yard
from support import Ran


class Team:
    """`yard` is our checkout, `other` that of the second person, `bare` the remote repository on the disk."""

    def __init__(self, yard: Yard, folder: Path) -> None:
        self.yard = yard
        self.bare = folder / "remote.git"
        self.other = folder / "other"
        git(folder, "clone", "-q", "--bare", str(yard.folder), str(self.bare))
        git(yard.folder, "remote", "add", "origin", str(self.bare))
        git(yard.folder, "fetch", "-q", "origin")
        git(folder, "clone", "-q", str(self.bare), str(self.other))
        git(self.other, "config", "user.name", "Bob")
        git(self.other, "config", "user.email", "bob@example.com")

    def sync(self, *words: str) -> Ran:
        """`rook sync … --json`."""
        return self.yard.rook.json("sync", *words)

    def synced(self, *words: str, status: int = 0) -> dict[str, Any]:
        """What it gives."""
        ran = self.sync(*words)
        assert ran.status == status, ran
        data: dict[str, Any] = ran.envelope["data"]
        return data

    def push_theirs(self, subject: str = "Theirs", **files: str) -> str:
        """The other person commits and pushes; returns the commit."""
        for name, content in files.items():
            (self.other / name.replace("_", ".")).write_text(content)
        git(self.other, "add", "-A")
        git(self.other, "commit", "-qm", subject)
        git(self.other, "push", "-q", "origin", "HEAD:main")
        return git(self.other, "rev-parse", "HEAD")

    def upstream(self) -> str:
        """The commit of main in the remote repository."""
        return git(self.bare, "rev-parse", "main")

    def refs(self) -> str:
        """Every ref of ours and where it is."""
        return git(self.yard.folder, "for-each-ref")

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The data of events of a type, the oldest first."""
        db = self.yard.rook.open()
        try:
            rows = db.all("SELECT data FROM events WHERE type = ? ORDER BY seq", (kind,))
        finally:
            db.close()
        return [json.loads(row[0]) for row in rows]
