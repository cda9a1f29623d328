"""A caller, with the roles that decide what it may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """What a caller may; each includes the ones before it."""

    READER = "reader"
    """Look at everything."""
    OPERATOR = "operator"
    """Change VNF instances, operations and subscriptions."""
    ADMIN = "admin"
    """Change packages and VIMs, which decide what operators can make, and where."""


_RANK: Final = {role: rank for rank, role in enumerate(Role)}
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OPERATORS_CHANGE: Final = ("/vnflcm/", "/vnfpkgm/v1/subscriptions")
_OPEN: Final = ("/health/", "/internal/", "/metrics")
"""Health and metrics are outside; the internal API has its own token."""


@dataclass(frozen=True)
class Caller:
    """Somebody who has shown who they are."""

    subject: str
    """Who, in the words of whoever knows them."""
    mode: str
    """How they showed it."""
    roles: frozenset[Role]
    project: str | None = None
    expires: float | None = None
    """From when on what they showed is worth nothing, in seconds since the epoch; None: nobody has said."""

    def may(self, needed: Role) -> bool:
        """Tell whether one of the roles is, or includes, the one that is needed."""
        return any(_RANK[role] >= _RANK[needed] for role in self.roles)


ANYBODY: Final = Caller("anybody", "none", frozenset({Role.ADMIN}))


def is_changing(method: str) -> bool:
    """Tell whether a method is one that changes something."""
    return method not in _READING


def is_open(path: str) -> bool:
    """Tell whether a path wants no credentials of the public API (api.md 6.1)."""
    return path == "/" or path.startswith(_OPEN)


def needed_role(method: str, path: str) -> Role:
    """Return the role that a request needs; what nobody thought of needs the highest."""
    if not is_changing(method):
        return Role.READER
    return Role.OPERATOR if path.startswith(_OPERATORS_CHANGE) else Role.ADMIN


def roles_of(names: Iterable[str], role_by_name: Mapping[str, Role]) -> frozenset[Role]:
    """Return our roles for an identity server's names; those that mean nothing here give none."""
    return frozenset(role_by_name[name] for name in names if name in role_by_name)
