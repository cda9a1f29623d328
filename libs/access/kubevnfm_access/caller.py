"""A caller with its roles, and the role that each request needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kubevnfm_clients.callback import PATH as CALLBACK_PATH


class Role(StrEnum):
    """The permissions of a caller; each role includes the ones above it."""

    READER = "reader"
    """Read everything."""
    OPERATOR = "operator"
    """Change VNF instances, operations, subscriptions, alarms, PM jobs, thresholds, virtual links and persistent volumes; report alerts, which heal and
    scale; erase credentials that workload clusters sent."""
    ADMIN = "admin"
    """Change packages and VIMs, which determine what operators can create, and where."""


_RANK: Final = {role: rank for rank, role in enumerate(Role)}
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OPERATORS_CHANGE: Final = (
    "/vnflcm/",
    "/vnffm/",
    "/kubevnfm/v1/automatic-actions/",
    "/vnfpm/",
    "/vnfpkgm/v1/subscriptions",
    "/vnfpkgm/v2/subscriptions",
    "/multicloud/v1/virtual-links",
    "/multicloud/v1/vnf_instances",
    "/multicloud/v1/persistent-volumes",
    "/multicloud/v1/subscriptions",
    "/multicloud/v1/group-operations",
    "/v1/vnf_instances",
    "/v1/instance",
    "/api/multicloud-k8s/v1/v1/vnf_instances",
    "/api/multicloud-k8s/v1/v1/instance",
    "/v2/cluster-providers/",
    "/api/multicloud-k8s/v1/v2/cluster-providers/",
    f"{CALLBACK_PATH}/",
)
_WEBHOOKS: Final = frozenset({"/alert", "/pm_event", "/pm_threshold", "/alert/auto_healing", "/alert/auto_scaling"})
"""Where monitoring systems report alerts: paths of Tacker."""
_SERVER_FAULTS: Final = "/server_notification/"
"""Where the notifiers of servers report faults."""
DRY_RUN: Final = "dry_run"
"""The query parameter with which a request is not carried out."""
_DRY_RUNS: Final = re.compile(r"/multicloud/v1/vnf_instances(/[^/]+(/rollback)?)?")
"""The paths whose POST and PATCH have it."""
_FOR_MACHINES: Final = ("/health/", "/internal/", "/metrics")
"""Health and metrics need no credentials; the internal API has its own token."""
LOGIN: Final = "/kubevnfm/v1/login"
"""How one can log in."""
OPENID: Final = f"{LOGIN}/openid"
"""Logging in at the identity server; no caller has credentials before, and none needs them after."""
SESSION: Final = "/kubevnfm/v1/session"
"""The caller's session, which each caller may begin and end."""
_LEAVING: Final = ("DELETE", SESSION)
"""The key of a session is enough to end it, so that one can log out without a role, and while the identity server is away."""
PAGE: Final = "/ui"
"""The web page, whose files hold no data."""
_SIGNED: Final = ("POST", CALLBACK_PATH)
"""Senders of credentials are no callers with roles: each signs with the key of its VNF instance."""


@dataclass(frozen=True)
class Caller:
    """An authenticated caller."""

    subject: str
    """The caller's name or id at the source of its credentials."""
    mode: str
    """The mode that authenticated it."""
    roles: frozenset[Role]
    project: str | None = None
    expires: float | None = None
    """End of validity of the credentials, in seconds since the epoch; None: unknown."""
    name: str | None = None
    """The name that people know the caller by, to be shown alone: others may have the same. None: the subject."""

    def may(self, needed: Role) -> bool:
        """Return whether one of the roles is the needed one or includes it."""
        return any(_RANK[role] >= _RANK[needed] for role in self.roles)


ANYBODY: Final = Caller("anybody", "none", frozenset({Role.ADMIN}))


def is_changing(method: str) -> bool:
    """Return whether requests with the method change something."""
    return method not in _READING


def is_open(method: str, path: str) -> bool:
    """Return whether a request needs no credentials of the public API (api.md 6.1)."""
    return (
        path in {"/", LOGIN, PAGE, OPENID}
        or (method, path) == _LEAVING
        or path.startswith((f"{PAGE}/", f"{OPENID}/"))
        or is_for_machines(method, path)
    )


def is_for_machines(method: str, path: str) -> bool:
    """Return whether only probes, senders and other services make a request, under whatever name their network gives us."""
    return path.startswith(_FOR_MACHINES) or (method, path) == _SIGNED


def needed_role(method: str, path: str, *, is_dry_run: bool = False) -> Role:
    """Return the role that a request needs; an unlisted path needs the highest. ``is_dry_run``: whether it has `DRY_RUN`."""
    is_asking = is_dry_run and method in {"POST", "PATCH"} and _DRY_RUNS.fullmatch(path) is not None
    if is_asking or not is_changing(method) or path == SESSION:
        return Role.READER
    return Role.OPERATOR if is_webhook(method, path) or path.startswith(_OPERATORS_CHANGE) else Role.ADMIN


def is_webhook(method: str, path: str) -> bool:
    """Return whether a monitoring system reports something."""
    return method == "POST" and (path in _WEBHOOKS or path.startswith(_SERVER_FAULTS))


def roles_of(names: Iterable[str], role_by_name: Mapping[str, Role]) -> frozenset[Role]:
    """Return our roles for an identity server's names; unmapped names are ignored."""
    return frozenset(role_by_name[name] for name in names if name in role_by_name)
