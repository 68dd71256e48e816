"""Which roles there are: Rookery's own, and what the project adds or replaces in `.rookery/roles/`.

Only the main checkout's folder counts, never a worktree's, so that no agent and no branch gives itself rights. A file
that cannot be used makes its role unusable, and no other. Rookery's own are read once for each process, the project's
again when a file has changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache

from rookery.base.errors import InvalidInput
from rookery.config import layout
from rookery.roles.file import is_role_name, read_role_file
from rookery.roles.model import Role, RoleInvalid

_BUILTIN = os.path.join(os.path.dirname(__file__), "builtin")
_NO_ROLES = frozenset({"resolver"})
"""Other texts that a project may have in the folder: how one-shot agents resolve conflicts."""
_SUFFIX = ".md"


@cache
def builtin_roles() -> Mapping[str, Role]:
    """Rookery's own roles by name, those that sling the most before the others."""
    files = sorted(os.listdir(_BUILTIN))
    roles = [read_role_file(os.path.join(_BUILTIN, file), file.removesuffix(_SUFFIX), {}) for file in files]
    return {role.name: role for role in sorted(roles, key=lambda role: -len(role.slings))}


def read_role(root: str | None, name: str) -> Role:
    """The role of exactly that name; raises RoleInvalid if its file cannot be used."""
    role = _of_project(root, name) or builtin_roles().get(name)
    if role is None:
        raise InvalidInput(f"no role {name}", hint="one of " + ", ".join(role_names(root)))
    return role


def find_role(root: str | None, text: str) -> Role:
    """The role of that name or alias; raises as `read_role` does."""
    if text in role_names(root):
        return read_role(root, text)
    owners = list(dict.fromkeys(role.name for role in _all_roles(root) if text in role.aliases))
    if len(owners) > 1:
        raise InvalidInput(f"{text} is a name of {' and '.join(owners)}", hint="say which role is meant")
    return read_role(root, owners[0] if owners else text)


def list_roles(root: str | None) -> list[Role]:
    """Every role that can be used, Rookery's own first."""
    return _read_all(root, role_names(root))[0]


def broken_roles(root: str) -> list[RoleInvalid]:
    """What is wrong with the project's own files."""
    return _read_all(root, _project_names(root))[1]


def _read_all(root: str | None, names: Iterable[str]) -> tuple[list[Role], list[RoleInvalid]]:
    roles, errors = [], []
    for name in names:
        try:
            roles.append(read_role(root, name))
        except RoleInvalid as error:
            errors.append(error)
    return roles, errors


def role_names(root: str | None) -> list[str]:
    """The name of every role, also of those whose file cannot be used."""
    added = () if root is None else _project_names(root)
    return list(dict.fromkeys((*builtin_roles(), *added)))


def role_groups(root: str) -> dict[str, str]:
    """The role that each group of mail stands for, such as `builders` and `workers`; also one that cannot be used."""
    groups = {f"{name}s": name for name in role_names(root)}
    return groups | {group: role.name for role in _all_roles(root) for group in role.groups}


def _all_roles(root: str | None) -> list[Role]:
    """Those that can be used, and Rookery's own also where the project's file for one cannot."""
    return [*builtin_roles().values(), *list_roles(root)]


def _project_names(root: str) -> Iterator[str]:
    try:
        files = sorted(os.listdir(_folder(root)))
    except (FileNotFoundError, NotADirectoryError):
        return
    for file in files:
        name = file.removesuffix(_SUFFIX)
        if name != file and not file.startswith(".") and name not in _NO_ROLES:
            yield name


def _of_project(root: str | None, name: str) -> Role | None:
    """The role as the project's file has it; None without one."""
    if root is None or name in _NO_ROLES or os.sep in name:
        return None
    path = _path(root, name)
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode) or os.path.islink(_folder(root)):
        raise RoleInvalid(f"{path} is not a plain file, or its folder is a link", hint="put the file itself there")
    role = _read(path, name, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    unknown = [sling for sling in role.slings if not _exists(root, sling)]
    if unknown:
        known = ", ".join(role_names(root))
        raise RoleInvalid(f"{path}: it slings {', '.join(unknown)}, and there is no such role; one of {known}")
    return role


@lru_cache(maxsize=256)
def _read(path: str, name: str, _stamp: tuple[int, ...]) -> Role:
    return read_role_file(path, name, builtin_roles())


def _exists(root: str, name: str) -> bool:
    return name in builtin_roles() or (is_role_name(name) and os.path.lexists(_path(root, name)))


def _path(root: str, name: str) -> str:
    return os.path.join(_folder(root), name + _SUFFIX)


def _folder(root: str) -> str:
    return layout.path(root, layout.ROLES)
