"""What the doctor asks of the project's own roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rookery.base.check import ERROR, OK, Check, Finding, Place
from rookery.base.text import plural
from rookery.roles.catalog import broken_roles, list_roles

_CATEGORY = "roles"


def check_roles(place: Place) -> Iterator[Finding]:
    """Every file in `.rookery/roles/` can be used, and no two roles share a name."""
    if place.root is None:
        return
    broken, roles = broken_roles(place.root), list_roles(place.root)
    names = Counter(name for role in roles for name in (role.name, *role.aliases))
    shared = sorted(name for name, count in names.items() if count > 1)
    for error in broken:
        yield Finding(_CATEGORY, "files", ERROR, error.message, error.hint)
    for name in shared:
        owners = " and ".join(role.name for role in roles if name in (role.name, *role.aliases))
        yield Finding(_CATEGORY, "names", ERROR, f"{name} is a name of {owners}", "change the aliases of one of them")
    if not broken and not shared:
        yield Finding(_CATEGORY, "files", OK, f"{plural(len(roles), 'valid role')}")


CHECKS: tuple[Check, ...] = (check_roles,)
