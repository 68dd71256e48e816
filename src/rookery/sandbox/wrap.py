"""Puts an agent's program into its sandbox: one function, for a headless turn and for a life in a terminal alike."""

from __future__ import annotations

import json
import os
import pwd
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rookery.base.draft import write_whole
from rookery.config import layout
from rookery.config.environ import read_environ
from rookery.environment.service import read_if_usable
from rookery.ops.context import Context
from rookery.processes.python import module_command
from rookery.runtimes.model import Command
from rookery.runtimes.registry import open_runtime
from rookery.sandbox.model import BUBBLEWRAP, HIDE, Mount, NoSandbox, Plan, build_environ, part_environ, socket_folder
from rookery.sandbox.places import find_repository, make_places, own_mounts, shared_mounts
from rookery.sandbox.probe import probe
from rookery.sessions.model import Session
from rookery.terminal.tmux import private_folder
from rookery.vcs import cage
from rookery.vcs.git.repository import GitStore


def wrap(
    ctx: Context, session: Session, command: Command, env: Mapping[str, str], provided: Iterable[str], *, terminal: bool
) -> tuple[str, ...]:
    """The words that start the program: its own, or those of a host that starts it in its sandbox.

    `env` is what the program would get without one; `provided` names what of it provisioning gave the agent.
    """
    if session.settings.sandbox != BUBBLEWRAP:
        return command.argv
    found = probe(ctx.root)
    if not found.works:
        raise NoSandbox(f"{session.agent} is to run in a sandbox: {found.reason}", hint=found.hint)
    names = [*provided, *command.env, *open_runtime(session.runtime).CREDENTIALS, *ctx.config.sandbox.credentials]
    path = os.path.join(ctx.session_folder(session.id), layout.SESSION_PLAN)
    _write_plan(path, _plan(ctx, session, command, env, names, found.words).replace(has_terminal=terminal))
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
    make_places(repository)
    homes = _homes(env)
    read = [os.path.normpath(os.path.join(homes[0], _from_home(each, env))) for each in settings.read]
    search = os.pathsep.join([env.get("PATH", ""), *_folders_of(command.argv[0], env)])
    own_home, runtime = home_folder(ctx, session), ctx.runtime_folder(session.id)
    _furnish(ctx, own_home, runtime)
    common = [*shared_mounts(root, homes, search, read), *_hide_credentials(ctx)]
    packed = os.path.join(ctx.session_folder(session.id), layout.SESSION_PACKED_REFS)
    os.close(os.open(packed, os.O_WRONLY | os.O_CREAT, 0o600))
    own = own_mounts(session.worktree, repository, packed, (runtime, own_home), _fixed(session, runtime))
    for_git = [
        *_git_mounts(root, homes, search),
        *_hide_credentials(ctx),
        *own_mounts(session.worktree, repository, repository.packed_refs),
    ]
    own_env, passed = part_environ(build_environ(env, names, own_home, settings.network), env)
    # From now on our own git works in this worktree with no more rights than the agent has.
    cage.keep(root, os.path.basename(session.worktree), [*words, "--unshare-net", *_words(for_git)], repository.common)
    return Plan(
        cage=(*words, *_words([*common, *own])),
        argv=command.argv,
        env=own_env,
        worktree=session.worktree,
        sockets=_sockets(session),
        packed=(repository.packed_refs, packed),
        holds=(repository.branch_folder, os.path.dirname(repository.logs[0])),
        network=settings.network,
        allow=settings.allow,
        passed=passed,
    )


def home_folder(ctx: Context, session: Session) -> str:
    """The home that the agent has instead of the user's."""
    return os.path.join(ctx.session_folder(session.id), layout.SESSION_HOME)


def _hide_credentials(ctx: Context) -> Iterator[Mount]:
    """Where the user's state folder lies outside of the home, it would be seen."""
    folder = os.path.join(os.path.realpath(read_environ().state_home), "rookery")
    stored = read_if_usable(ctx.root)
    file = "" if stored is None else stored.credentials_path
    # The file lies in a folder of the project, in the folder of all projects.
    recorded = os.path.dirname(os.path.realpath(os.path.dirname(file))) if file else folder
    yield from (Mount(HIDE, path) for path in dict.fromkeys((folder, recorded)) if os.path.isdir(path))


def _words(mounts: Iterable[Mount]) -> list[str]:
    return [word for mount in mounts for word in mount.words]


def _git_mounts(root: str, homes: Sequence[str], search: str) -> Iterator[Mount]:
    """What our own git sees: the user's settings too."""
    names = (".gitconfig", os.path.join(".config", "git"))
    yield from shared_mounts(root, homes, search, [os.path.join(home, name) for home in homes for name in names])


def _fixed(session: Session, runtime: str) -> list[str]:
    """What tells the agent's program what to do, and must not be changed by what it does."""
    module = open_runtime(session.runtime)
    found = [os.path.join(session.worktree, module.INSTRUCTIONS)]
    for folder in (runtime, *(entry.path for entry in os.scandir(runtime) if entry.is_dir(follow_symlinks=False))):
        found += [os.path.join(folder, name) for name in module.SETTINGS]
    return [each for each in found if os.path.isfile(each) and not os.path.islink(each)]


def _furnish(ctx: Context, own_home: str, runtime: str) -> None:
    """Make the agent's own folders, with the name that its commits carry."""
    for folder in (own_home, runtime):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(own_home, ".gitconfig")
    if os.path.lexists(path):
        return
    who = GitStore(ctx.root, ctx.config.vcs.timeout).identity()
    quoted = {key: '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for key, value in who.items()}
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"[user]\n\tname = {quoted['user.name']}\n\temail = {quoted['user.email']}\n")


def _sockets(session: Session) -> str:
    """The folder of its sockets, in one that is nobody else's."""
    folder = socket_folder(session.id)
    private_folder(os.path.dirname(folder))
    return folder


def _from_home(path: str, env: Mapping[str, str]) -> str:
    """A path with `~` as the agent's environment has it: ours may be another's."""
    if path == "~" or path.startswith("~/"):
        return (env.get("HOME") or "/") + path[1:]
    return os.path.expanduser(path)


def _homes(env: Mapping[str, str]) -> list[str]:
    """The user's home, as the environment and as the system says."""
    found = [env.get("HOME") or "/", pwd.getpwuid(os.getuid()).pw_dir]
    return list(dict.fromkeys(os.path.realpath(each) for each in found))


def _folders_of(program: str, env: Mapping[str, str]) -> list[str]:
    """Where the agent's program is called and where it really is, with every link on the way: it may have several."""
    path = shutil.which(program, path=env.get("PATH", os.defpath))
    if path is None:
        return []
    found = [os.path.dirname(os.path.realpath(path))]
    while os.path.islink(path):
        found.append(os.path.dirname(path))
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return [os.path.normpath(each) for each in (*found, os.path.dirname(path))]


def _write_plan(path: str, plan: Plan) -> None:
    write_whole(path, json.dumps(plan.as_dict()), mode=0o600)
