"""Which version control holds a folder, found by walking up, without starting a program."""

from __future__ import annotations

import os

from rookery.base.errors import NoRepository
from rookery.config.model import VcsConfig
from rookery.config.project import upward
from rookery.vcs import cage
from rookery.vcs.backend import Vcs
from rookery.vcs.git.checkout import Git
from rookery.vcs.jj.workspace import Jj
from rookery.vcs.model import GIT, JJ

AUTO = "auto"
_MARKS = {JJ: ".jj", GIT: ".git"}
_HINTS = {JJ: "run `jj git init --colocate` here, or set vcs.backend to auto", GIT: "", AUTO: ""}


def detect(start: str, backend: str = AUTO) -> tuple[str, str] | None:
    """The kind and the top of the checkout that `start` lies in; jj goes before git where both are."""
    kinds = (JJ, GIT) if backend == AUTO else (backend,)
    if cage.find(os.path.realpath(start)) is not None:
        kinds = (GIT,)  # the agent made a `.jj` that is in there, and it names programs
    for folder in upward(os.path.realpath(start)):
        for kind in kinds:
            if os.path.exists(os.path.join(folder, _MARKS[kind])):
                return kind, folder
        if is_bare(folder):
            break
    return None


def is_bare(folder: str) -> bool:
    """True if the folder is a git repository that has no checkout."""
    if os.path.basename(folder) == _MARKS[GIT]:
        return False
    has_folders = all(os.path.isdir(os.path.join(folder, name)) for name in ("objects", "refs"))
    return has_folders and os.path.isfile(os.path.join(folder, "HEAD"))


def open_vcs(start: str, settings: VcsConfig) -> Vcs:
    """The checkout that `start` lies in; raises NoRepository."""
    repository = detect(start, settings.backend)
    if repository is None:
        raise _nothing(start, settings.backend)
    kind, root = repository
    return Jj(root, settings.timeout) if kind == JJ else Git(root, settings.timeout)


def _nothing(start: str, backend: str) -> NoRepository:
    for folder in filter(is_bare, upward(os.path.realpath(start))):
        return NoRepository(
            f"{folder} is a bare repository: it has no checkout",
            hint="make one with `git worktree add FOLDER`, and go there",
        )
    what = "repository" if backend == AUTO else f"{backend} repository"
    return NoRepository(f"no {what} in {start} or above it", hint=_HINTS[backend])
