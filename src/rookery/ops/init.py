"""Makes a project of a repository, or finishes and repairs one. `doctor/init_ops.py` declares `rook init`.

The order of the steps makes a kill harmless: what keeps the state out of git comes first, and the database, which
makes a folder a project, comes last. The next `rook init` makes what is missing in between.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rookery.base import call as calls
from rookery.base.check import Finding
from rookery.base.errors import InvalidInput, NoRepository, NotInitialised, Refused, StorageFailed
from rookery.base.record import Record
from rookery.base.text import check_text
from rookery.config import layout
from rookery.config.loader import load_config
from rookery.config.model import Config, GateConfig
from rookery.config.project import database_path, find_repository, find_root, make_state_folder
from rookery.config.template import GITIGNORE, render_template
from rookery.db.database import Database
from rookery.ops.context import Context
from rookery.ops.guess import Guess, guess_gates
from rookery.ops.state_owner import check_state
from rookery.vcs.backend import Vcs
from rookery.vcs.checks import IDENTITY_HINT, identity_problem, missing_identity
from rookery.vcs.detect import open_vcs
from rookery.vcs.model import GIT
from rookery.vcs.ref_names import AGENT_BRANCHES


@dataclass(frozen=True, slots=True)
class Initialised(Record):
    """What `rook init` found, made and kept."""

    root: str
    vcs: str | None
    base: str | None
    gates: tuple[str, ...]
    """The commands that work has to pass before it lands, as they were found and written."""
    created: tuple[str, ...]
    """What was made or written again, under the root."""
    kept: tuple[str, ...]
    """What was there and was left as it is."""
    notes: tuple[str, ...]
    """What may surprise."""
    next: tuple[str, ...]
    """What to do now."""
    checks: tuple[Finding, ...] = ()
    """What the gates said of the base, if they were tried."""
    has_commit: bool = True
    """False if work has nothing to start from yet."""


def init(ctx: Context, *, yes: bool = False, force: bool = False) -> Initialised:
    """Make a project of the repository that the caller is in; asks a person unless `yes`."""
    root, in_repository = _find_place(ctx, force)
    folder = layout.path(root)
    check_state(root)
    _refuse_strange_folder(root, folder)
    config_file = os.path.join(folder, layout.CONFIG)
    writes_config = force or not os.path.lexists(config_file)
    config = load_config(None if force else root, ctx.environ, ctx.flags).config
    vcs = _open_vcs(ctx, root, config) if in_repository else None
    asks = writes_config and ctx.is_interactive and not yes
    base = None if vcs is None else _choose_base(vcs, config.project.base, asks=asks, checks=writes_config)
    guesses = guess_gates(root) if writes_config and not config.gates else []
    gates = _choose_gates([guess.gate for guess in guesses if not guess.missing], asks=asks)
    known = ({"project.base": base} if base else {}) | ({"gates": gates} if gates else {})
    parts = _make(folder, render_template(known).encode(), force)
    has_commit = vcs is None or vcs.current_commit() is not None
    return Initialised(
        root,
        vcs.kind if vcs else None,
        base,
        tuple(gate.run for gate in gates or config.gates),
        tuple(f"{layout.FOLDER}/{name}" for name, is_new in parts.items() if is_new),
        tuple(f"{layout.FOLDER}/{name}" for name, is_new in parts.items() if not is_new),
        (*_notes(ctx, root, vcs), *_missing(guesses), *(_left(root, vcs) if parts[layout.DATABASE] else ())),
        tuple(_next_steps(vcs, base, has_commit, bool(gates or config.gates))),
        has_commit=has_commit,
    )


def _find_place(ctx: Context, force: bool) -> tuple[str, bool]:
    """The root of the project to be, and whether it is a repository's."""
    start = calls.absolute(ctx.environ.root or ctx.cwd)
    if not os.path.isdir(start):
        raise InvalidInput(f"{start} is not a folder", hint="set ROOKERY_ROOT to the project's root, or unset it")
    root = find_repository(start)
    if root is not None:
        return root, True
    if force:
        return start, False
    try:
        return find_root(start), False  # made with --force before
    except NotInitialised:
        raise NoRepository(
            f"{start} is not inside a git or jj repository",
            hint="run `git init` first, or `rook init --force` to plan tasks without version control",
        ) from None


def _refuse_strange_folder(root: str, folder: str) -> None:
    """Refuse before anything is made where the state would land somewhere else, or nowhere."""
    if os.path.islink(folder):
        target = os.path.realpath(folder)
        if os.path.commonpath([target, os.path.realpath(root)]) != os.path.realpath(root):
            raise Refused(f"{folder} is a link that leads out of the project, to {target}", hint="remove the link")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise Refused(f"{folder} is not a folder", hint="move it away; Rookery keeps its state there")


def _open_vcs(ctx: Context, root: str, config: Config) -> Vcs:
    # The folder of a bare repository is not a checkout; the caller's is.
    has_checkout = any(os.path.lexists(os.path.join(root, name)) for name in (".git", ".jj"))
    return open_vcs(root if has_checkout else ctx.cwd, config.vcs)


def _choose_base(vcs: Vcs, configured: str, *, asks: bool, checks: bool) -> str | None:
    """The branch that work starts from: as configured, else as answered, else as guessed."""
    guess = vcs.default_branch()
    base = configured or guess
    if not configured and asks:
        base = _ask(f"Work starts from and lands on the branch [{guess or 'none'}]: ") or guess
    if base is not None and base != guess and checks and vcs.current_commit() is not None:
        vcs.resolve(base)
    return None if base is None else check_text("the name of the base branch", base)


def _choose_gates(gates: list[GateConfig], *, asks: bool) -> tuple[GateConfig, ...]:
    """The guessed gates, if a person agrees or is not asked."""
    if not gates or not asks:
        return tuple(gates)
    shown = ", ".join(f"`{gate.run}`" for gate in gates)
    answer = _ask(f"Work lands only if this passes: {shown} [Y/n]: ").lower()
    return tuple(gates) if answer in ("", "y", "yes") else ()


def _ask(question: str) -> str:
    try:
        return calls.ask(question).strip()
    except EOFError:
        raise Refused("no answer, so nothing was made", hint="`rook init --yes` asks nothing") from None


def _missing(guesses: list[Guess]) -> Iterator[str]:
    for guess in guesses:
        if guess.missing:
            yield f"{guess.why}, but {guess.missing} is not installed: add a gate under `gates:` yourself"


def _make(folder: str, config: bytes, force: bool) -> dict[str, bool]:
    """Make what is missing, and say of each part whether it is new."""
    try:
        parts = {"": make_state_folder(folder)}
        with _alone(folder):
            ignore = os.path.join(folder, layout.IGNORE)
            parts[layout.IGNORE] = not (os.path.isfile(ignore) and os.path.getsize(ignore))
            if parts[layout.IGNORE]:
                _write(ignore, GITIGNORE.encode())
            parts |= _make_config(os.path.join(folder, layout.CONFIG), config, force)
            database = database_path(os.path.dirname(folder))
            parts[layout.DATABASE] = not os.path.exists(database)
            Database.create(database).close()
    except OSError as error:
        raise StorageFailed(
            f"{error.filename or folder} cannot be written: {error.strerror}",
            hint="make the folder writable and run `rook init` again; it goes on where it stopped",
        ) from error
    return parts


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Hold the folder's lock, so that two inits at once make everything once. A kill lets go of it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # NFS cannot lock a folder; one of two inits at once may fail there
            calls.lock(handle)
        yield
    finally:
        os.close(handle)


def _make_config(path: str, config: bytes, force: bool) -> dict[str, bool]:
    parts = {}
    if os.path.lexists(path):
        if not force or (old := Path(path).read_bytes()) == config:
            return {layout.CONFIG: False}
        backup = next(name for number in count(1) if not os.path.lexists(name := f"{path}.bak-{number}"))
        _write(backup, old)
        parts[os.path.basename(backup)] = True
    _write(path, config)
    return parts | {layout.CONFIG: True}


def _write(path: str, data: bytes) -> None:
    """Put a file in place whole: it is there with all that belongs in it, or it is not there."""
    half = path + ".new"  # the folder's lock is held: what a killed init left is written over
    with open(half, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(half, path)


def _notes(ctx: Context, root: str, vcs: Vcs | None) -> Iterator[str]:
    if os.path.realpath(ctx.cwd) != os.path.realpath(root):
        what = "the repository's main checkout" if vcs else "the project's root"
        yield f"you are in {ctx.cwd}; the project is at {root}, {what}"
    missing = missing_identity(root) if vcs is not None and vcs.kind == GIT else []
    if missing:
        yield f"{identity_problem(missing)}; set them: {IDENTITY_HINT}"


def _left(root: str, vcs: Vcs | None) -> Iterator[str]:
    """What is here of an earlier project whose database is gone. The new one knows nothing of it, and keeps it."""
    branches = vcs.branches(AGENT_BRANCHES) if vcs is not None else {}
    if branches:
        what = "branch" if len(branches) == 1 else "branches"
        yield (
            f"{len(branches)} {what} of an earlier project's agents, such as {min(branches)}: "
            "`rook merge --branch NAME` lands one, `git branch -D NAME` deletes it"
        )
    folder = layout.path(root, layout.WORKTREES)
    worktrees = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    if worktrees:
        yield f"{folder} has worktrees of an earlier project: {', '.join(worktrees)}: take what you need"


def _next_steps(vcs: Vcs | None, base: str | None, has_commit: bool, has_gates: bool) -> Iterator[str]:
    if vcs is None:
        yield "tasks can be planned; to start and complete them, run `git init` and then `rook init` again"
    elif not has_commit:
        yield "make a first commit; work starts from one"
    if vcs is not None and base is None:
        yield f"set project.base in {layout.FOLDER}/{layout.CONFIG}: no branch to start from was found"
    if vcs is not None and not has_gates:
        yield f"name the commands that must pass before work lands under `gates:` in {layout.FOLDER}/{layout.CONFIG}"
    elif vcs is not None and has_commit:
        yield "rook doctor --gates tries the gates on the base as it is"
    yield 'rook task create "…" plans the first task'
    yield "rook doctor checks that everything works"
