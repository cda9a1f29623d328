"""The limits of projects and their use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_lab.openstack.settings import UNLIMITED

QUOTA_NAMES: Final = (
    "instances",
    "cores",
    "ram",
    "key_pairs",
    "server_groups",
    "network",
    "subnet",
    "port",
    "router",
    "floatingip",
    "security_group",
    "volumes",
    "gigabytes",
    "snapshots",
)
"""Names as in Nova (ram in MiB), Neutron and Cinder (gigabytes); they do not overlap."""


class Quotas:
    """The limits of every project and its use, counted as resources are created and deleted."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self.limits: dict[str, int] = dict.fromkeys(QUOTA_NAMES, UNLIMITED)
        self.change(limits)
        self._used: dict[str, Counter[str]] = {}

    def change(self, limits: Mapping[str, Any]) -> None:
        """Set the named limits (-1: none); raise ValueError that names the first invalid one, and change nothing."""
        for name, value in limits.items():
            if name not in QUOTA_NAMES:
                raise ValueError(f"{name}: no such quota; there are {', '.join(QUOTA_NAMES)}")
            if isinstance(value, bool) or not isinstance(value, int) or value < UNLIMITED:
                raise ValueError(f"{name}: a whole number, -1 or more, expected, got {value!r}")
        self.limits.update(limits)

    def used(self, project_id: str, name: str) -> int:
        """Return the project's use of a quota."""
        return self._of(project_id)[name]

    def exceeded(self, project_id: str, **wanted: int) -> list[str]:
        """Return the quotas that the additional use would exceed."""
        used = self._of(project_id)
        return [
            name
            for name, count in wanted.items()
            if (limit := self.limits[name]) != UNLIMITED and used[name] + count > limit
        ]

    def use(self, project_id: str, **amounts: int) -> None:
        """Add to the project's use."""
        used = self._of(project_id)
        for name, amount in amounts.items():
            used[name] += amount

    def release(self, project_id: str, **amounts: int) -> None:
        """Subtract from the project's use."""
        self._of(project_id).subtract(amounts)

    def _of(self, project_id: str) -> Counter[str]:
        counter = self._used.get(project_id)
        if counter is None:
            counter = self._used[project_id] = Counter()
        return counter
