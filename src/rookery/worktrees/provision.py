"""What a new worktree gets before its agent begins: files, links, ports, and what the setup command creates.

It fails closed: a file that is missing or leads out of the project, or a command that exits with an error, ends the
sling, and the error quotes it. What it creates is kept out of commits, and remembered, so that it is not taken for the
agent's work.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rookery.base.draft import draft_name, write_whole
from rookery.base.errors import InvalidInput, ProgramFailed, Refused, StorageFailed
from rookery.base.json import dumps, loads
from rookery.base.record import Record
from rookery.config import layout
from rookery.config.model import ProvisionConfig, VcsConfig
from rookery.config.project import make_state_folders
from rookery.environment.masking import SHORTEST, mask, secret_values
from rookery.environment.service import project_environ
from rookery.processes.process import run
from rookery.vcs.backend import Vcs
from rookery.vcs.detect import open_vcs
from rookery.vcs.git.porcelain import ADDED, UNTRACKED
from rookery.vcs.model import ignore_line

_Put = Callable[[str, str, str], None]
Enclose = Callable[[tuple[str, ...], dict[str, str]], tuple[Sequence[str], dict[str, str]]]

_LAST_CHARACTERS = 4000
_KEYS = ("copied", "linked", "made", "secrets")
"""The fields of a manifest in its file, in order."""


class ProvisionFailed(Refused):
    """A worktree did not get what the configuration says."""

    code = "provision_failed"


class SetupFailed(ProvisionFailed):
    """The setup command failed on the files of a worktree."""


@dataclass(frozen=True, slots=True)
class Manifest(Record):
    """What provisioning created, and when it was done."""

    copied: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    """Files of the setup command that the repository does not ignore by itself."""
    secrets: tuple[str, ...] = ()
    finished: int = 0
    """Nanoseconds, by the clock of the file system."""

    def covers(self, root: str, path: str) -> bool:
        """True if the file was there when provisioning was done, and has not changed since."""
        try:
            return os.lstat(os.path.join(root, path)).st_ctime_ns <= self.finished
        except FileNotFoundError:
            return True

    def covers_folder(self, root: str, path: str) -> bool:
        """The same of all that is in a folder."""
        return all(
            self.covers(folder, name)
            for folder, names, files in os.walk(os.path.join(root, path))
            for name in (".", *names, *files)
        )

    @property
    def excluded(self) -> frozenset[str]:
        """What it keeps out of commits."""
        return frozenset((*self.copied, *self.linked, *self.created))


def provision(
    root: str,
    worktree: str,
    settings: ProvisionConfig,
    *,
    vcs_config: VcsConfig,
    session_folder: str,
    ports: tuple[int, int] | None = None,
    enclose: Enclose | None = None,
    hides: Callable[[list[str]], None] | None = None,
) -> dict[str, str]:
    """Give a worktree what the configuration says, and return the environment of its agent. Safe to repeat.

    What it creates is kept out of commits by `hides`; without it, by the worktree's own excludes.

    Also when it fails, what it created by then is hidden and remembered, so that the unused worktree can be removed.
    The setup command runs what the base holds, which may be an agent's work: `enclose` puts it into a sandbox.
    """
    names = [os.path.normpath(entry.removesuffix("?")) for entry in (*settings.copy, *settings.link)]
    for name in names:
        _inside(root, name)
    vcs = open_vcs(worktree, vcs_config)
    hide = hides or vcs.exclude
    if names:
        hide([ignore_line(name) for name in names])
    env = environment_of(settings, ports)
    copied: list[str] = []
    linked: list[str] = []
    try:
        _place(root, worktree, settings.copy, _copy, copied)
        _place(root, worktree, settings.link, _link, linked)
        if settings.setup:
            _set_up(root, worktree, settings, env, enclose)
    finally:
        created = _hide_loose(vcs, hide) if settings.setup else ()
        secrets = tuple(_find_secrets(worktree, copied))
        _remember(session_folder, Manifest(tuple(copied), tuple(linked), created, secrets))
    return env


def environment_of(settings: ProvisionConfig, ports: tuple[int, int] | None) -> dict[str, str]:
    """The variables that the configuration and the leased ports give an agent."""
    env = dict(settings.env)
    if ports is not None:
        first, count = ports
        numbers = ",".join(str(port) for port in range(first, first + count))
        env |= {"ROOKERY_PORT": str(first), "ROOKERY_PORTS": numbers}
    return env


def _hide_loose(vcs: Vcs, hide: Callable[[list[str]], None]) -> tuple[str, ...]:
    """Keep what the setup command left outside of ignored folders from being committed."""
    paths = tuple(change.path for change in vcs.status().changes if change.kind in (ADDED, UNTRACKED))
    if paths:
        hide([ignore_line(path) for path in paths])
    return paths


def read_manifest(session_folder: str | None) -> Manifest:
    """What was created for a session; an empty manifest if nothing was."""
    if session_folder is None:
        return Manifest()
    path = os.path.join(session_folder, layout.SESSION_MANIFEST)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            data = loads(file.read())
        finished = os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return Manifest()
    copied, linked, created, secrets = (tuple(data[key]) for key in _KEYS)
    return Manifest(copied, linked, created, secrets, finished)


def _place(root: str, worktree: str, names: Sequence[str], put: _Put, done: list[str]) -> None:
    """Put each named file of the main checkout into the worktree, and note it in `done`."""
    for entry in names:
        name, is_optional = entry.removesuffix("?"), entry.endswith("?")
        source, target = _inside(root, name), _inside(worktree, name)
        if not os.path.lexists(source):
            if is_optional:
                continue
            raise ProvisionFailed(
                f"every worktree gets {name}, and {root} has none", hint=f"create it, or write {name}?"
            )
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            put(source, target, os.path.realpath(root))
        except OSError as error:
            raise StorageFailed(f"{name} cannot be put into {worktree}: {error.strerror}") from error
        done.append(os.path.normpath(name))


def _inside(folder: str, name: str) -> str:
    """The path of a name in a folder; one that leads out of it, by itself or by a link, is refused."""
    clean = os.path.normpath(name)
    is_ours = clean.split(os.sep)[0] in ("..", ".", ".git", ".jj", layout.FOLDER)
    if not name.strip() or "\0" in name or os.path.isabs(name) or is_ours:
        raise InvalidInput(f"{name!r} cannot be given to a worktree", hint="name a path inside the main checkout")
    top = os.path.realpath(folder)
    path = os.path.join(top, clean)
    _refuse_outside(os.path.dirname(path), top)
    return path


def _refuse_outside(path: str, top: str) -> None:
    if os.path.commonpath([top, os.path.realpath(path)]) != top:
        raise ProvisionFailed(f"{path} leads out of {top} by a link", hint="name the file itself, inside the checkout")


def _copy(source: str, target: str, top: str) -> None:
    """Copy a file or a folder, links as links. A link that leads out of `top` is refused, or one at the target."""
    if os.path.islink(source):
        _refuse_outside(source, top)
        if os.path.isabs(os.readlink(source)):
            raise ProvisionFailed(f"{source} is a link by an absolute path", hint="use provision.link for it")
    if os.path.isdir(source) and not os.path.islink(source):
        if os.path.islink(target):
            raise ProvisionFailed(f"{target} is a link, so nothing is copied into it", hint="name another path")
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(source):
            _copy(os.path.join(source, name), os.path.join(target, name), top)
        shutil.copystat(source, target)
    elif os.path.islink(source) or os.path.isfile(source):  # a socket or a pipe has no content
        half = draft_name(target)
        shutil.copy2(source, half, follow_symlinks=False)
        os.replace(half, target)


def _link(source: str, target: str, top: str) -> None:
    """Make a link to the main checkout's file; one that is there already stays.

    It is relative, so that in a copied or moved project it leads to that project's own files.
    """
    _refuse_outside(source, top)
    relative = os.path.relpath(source, os.path.realpath(os.path.dirname(target)))
    if os.path.islink(target) and os.readlink(target) in (relative, source):
        return
    if os.path.lexists(target):
        raise ProvisionFailed(f"{target} already exists", hint="what is tracked cannot be linked")
    os.symlink(relative, target)


def _set_up(root: str, worktree: str, settings: ProvisionConfig, env: dict[str, str], enclose: Enclose | None) -> None:
    argv: Sequence[str] = ("/bin/sh", "-c", settings.setup)
    if enclose is None:
        whole = project_environ(root) | env
    else:
        argv, whole = enclose(tuple(argv), env)
    try:
        done = run(argv, cwd=worktree, timeout=settings.setup_timeout, env=whole, check=False)
    except ProgramFailed as error:
        raise SetupFailed(f"the setup command failed: {error.message}", hint="see provision.setup") from error
    if not done.ok:
        output = mask(done.stdout + done.stderr, secret_values(whole))[-_LAST_CHARACTERS:].strip()
        raise SetupFailed(
            f"the setup command `{settings.setup}` exited with {done.status}:\n{output}", hint="see provision.setup"
        )


def _find_secrets(worktree: str, copied: Sequence[str]) -> list[str]:
    """The values of `KEY=VALUE` lines that are long enough to be recognised."""
    values: dict[str, None] = {}
    for name in copied:
        path = os.path.join(worktree, name)
        if os.path.basename(name).startswith(".env") and os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                values |= dict.fromkeys(_value_of(line) for line in file)
    return [value for value in values if len(value) >= SHORTEST]


def _value_of(line: str) -> str:
    name, _, rest = line.strip().removeprefix("export ").partition("=")
    value = rest.strip()
    if name.lstrip().startswith("#"):
        return ""
    is_quoted = value[:1] in ("'", '"')
    return value[1:].partition(value[0])[0] if is_quoted else value.partition(" #")[0].rstrip()


def _remember(session_folder: str, manifest: Manifest) -> None:
    """Write the manifest, for its user alone: it holds secrets. Its own time says when provisioning was done."""
    make_state_folders(session_folder)
    path = os.path.join(session_folder, layout.SESSION_MANIFEST)
    data = dict(zip(_KEYS, manifest.as_tuple(), strict=False))
    write_whole(path, dumps(data).encode("utf-8", "surrogateescape"), mode=0o600)
