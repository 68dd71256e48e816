"""Puts an agent's program into its sandbox: one function, for a headless turn and for a session in a terminal alike."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rookery.base.draft import write_whole
from rookery.base.json import dumps
from rookery.config import layout
from rookery.config.environ import read_environ
from rookery.config.project import make_state_folders
from rookery.environment.store import credentials_path
from rookery.ops.context import Context
from rookery.processes.python import module_command
from rookery.runtimes.model import Command
from rookery.runtimes.registry import open_runtime
from rookery.sandbox.model import BUBBLEWRAP, HIDE, Mount, NoSandbox, Plan, socket_folder
from rookery.sandbox.mounts import create_mount_points, find_repository, own_mounts, shared_mounts
from rookery.sandbox.probe import probe
from rookery.sessions.model import Session
from rookery.terminal.tmux import private_folder
from rookery.vcs import cage
from rookery.vcs.folders import is_below
from rookery.vcs.git.repository import GitStore

_GIT_SETTINGS = (".gitconfig", os.path.join(".config", "git"))


def wrap(
    ctx: Context, session: Session, command: Command, env: Mapping[str, str], provided: Iterable[str], *, terminal: bool
) -> tuple[str, ...]:
    """The words that start the program: its own, or those of a host that starts it in its sandbox.

    `env` is the program's environment without a sandbox; `provided` names the variables that provisioning gave it.
    """
    if session.settings.sandbox != BUBBLEWRAP:
        return command.argv
    bubblewrap = probe()
    if not bubblewrap.works:
        raise NoSandbox(f"{session.agent} has to run in a sandbox: {bubblewrap.reason}", hint=bubblewrap.hint)
    names = [*provided, *command.env, *open_runtime(session.runtime).CREDENTIALS, *ctx.config.sandbox.credentials]
    plan = _plan(ctx, session, command, env, names, bubblewrap.words).replace(has_terminal=terminal)
    path = os.path.join(ctx.session_folder(session.id), layout.SESSION_PLAN)
    write_whole(path, dumps(plan, ascii=True), mode=0o600)
    return (*module_command("rookery.sandbox.host"), ctx.root, session.id, path)


def _plan(
    ctx: Context,
    session: Session,
    command: Command,
    env: Mapping[str, str],
    names: Sequence[str],
    words: Sequence[str],
) -> Plan:
    settings, root = ctx.config.sandbox, os.path.realpath(ctx.root)
    repository = find_repository(session.worktree, session.branch)
    create_mount_points(repository)
    homes = _homes(env)
    read = [os.path.normpath(os.path.join(homes[0], _expand_home(path, env))) for path in settings.read]
    search = os.pathsep.join([env.get("PATH", ""), *_folders_of(command.argv[0], env)])
    folder, runtime = ctx.session_folder(session.id), ctx.runtime_folder(session.id)
    own_home = os.path.join(folder, layout.SESSION_HOME)
    _create_home(ctx, own_home, runtime)
    secrets = list(_hide_credentials(ctx))
    packed = os.path.join(folder, layout.SESSION_PACKED_REFS)
    os.close(os.open(packed, os.O_WRONLY | os.O_CREAT, 0o600))
    others = list(_hide_others(root, session.worktree))
    mounts = [
        *shared_mounts(root, homes, search, read),
        *secrets,
        *others,
        *own_mounts(session.worktree, repository, packed, (runtime, own_home), _fixed(session, runtime)),
    ]
    # Our own git also reads the user's settings.
    git_settings = [os.path.join(home, name) for home in homes for name in _GIT_SETTINGS]
    git_mounts = [
        *shared_mounts(root, homes, search, git_settings),
        *secrets,
        *others,
        *own_mounts(session.worktree, repository, repository.packed_refs),
    ]
    # From now on our own git works in this worktree with no more rights than the agent has.
    cage.keep(session.worktree, [*words, "--unshare-net", *_words(git_mounts)], repository.common)
    sockets = socket_folder(session.id)
    private_folder(os.path.dirname(sockets))
    return Plan(
        cage=(*words, *_words(mounts)),
        argv=command.argv,
        names=tuple(names),
        home=own_home,
        worktree=session.worktree,
        sockets=sockets,
        packed=(repository.packed_refs, packed),
        branch=repository.branch_file,
        logs=repository.logs,
        network=settings.network,
        allow=settings.allow,
    )


def _words(mounts: Iterable[Mount]) -> list[str]:
    return [word for mount in mounts for word in mount.words]


def _hide_credentials(ctx: Context) -> Iterator[Mount]:
    """Hide the user's state folder, which may lie outside of the home."""
    folder = os.path.join(os.path.realpath(read_environ().state_home), "rookery")
    file = credentials_path(ctx.root)
    # The file lies in a folder of the project, in the folder of all projects.
    recorded = os.path.dirname(os.path.realpath(os.path.dirname(file))) if file else folder
    yield from (Mount(HIDE, path) for path in dict.fromkeys((folder, recorded)) if os.path.isdir(path))


def _fixed(session: Session, runtime: str) -> list[str]:
    """The files that tell the agent's program what to do: the program must not change them."""
    module = open_runtime(session.runtime)
    paths = [os.path.join(session.worktree, module.INSTRUCTIONS)]
    for folder in (runtime, *(entry.path for entry in os.scandir(runtime) if entry.is_dir(follow_symlinks=False))):
        paths += [os.path.join(folder, name) for name in module.SETTINGS]
    return [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]


def _create_home(ctx: Context, own_home: str, runtime: str) -> None:
    """Make the agent's own folders, with the name that its commits carry."""
    for folder in (own_home, runtime):
        make_state_folders(folder)
    path = os.path.join(own_home, ".gitconfig")
    if os.path.lexists(path):
        return
    identity = GitStore(ctx.root, ctx.config.vcs.timeout).identity()
    quoted = {key: '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for key, value in identity.items()}
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"[user]\n\tname = {quoted['user.name']}\n\temail = {quoted['user.email']}\n")


def _hide_others(root: str, worktree: str) -> Iterator[Mount]:
    """The worktrees beside one that is not in the project's own folder, which is hidden anyway."""
    folder = os.path.dirname(worktree)
    if not is_below(folder, layout.path(root)):
        yield Mount(HIDE, folder)


def _expand_home(path: str, env: Mapping[str, str]) -> str:
    """A path with `~` as the agent's environment has it, which may differ from ours."""
    if path == "~" or path.startswith("~/"):
        return (env.get("HOME") or "/") + path[1:]
    return os.path.expanduser(path)


def _homes(env: Mapping[str, str]) -> list[str]:
    """The user's home, as the environment and as the system says."""
    paths = (env.get("HOME") or "/", pwd.getpwuid(os.getuid()).pw_dir)
    return list(dict.fromkeys(os.path.realpath(path) for path in paths))


def _folders_of(program: str, env: Mapping[str, str]) -> list[str]:
    """The folders of the program's name, of its real file, and of every link between them."""
    path = shutil.which(program, path=env.get("PATH", os.defpath))
    if path is None:
        return []
    folders = [os.path.dirname(os.path.realpath(path))]
    while os.path.islink(path):
        folders.append(os.path.dirname(path))
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return [os.path.normpath(folder) for folder in (*folders, os.path.dirname(path))]
