"""What no branch may change: Rookery's own folder, whose settings decide what the next agent can reach."""

from __future__ import annotations

from collections.abc import Iterable

from rookery.config.project import is_own_name


def protected_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of some paths of a repository that are in Rookery's folder, on any file system."""
    return tuple(path for path in paths if is_own_name(path.partition("/")[0]))
