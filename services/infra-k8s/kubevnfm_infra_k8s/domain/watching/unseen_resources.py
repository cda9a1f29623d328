"""How long a custom resource without a status is waited for: until its controller can have seen it (capi.md CR-027).

An operator of the set takes its time to start, and to become the leader: until then its resources have no status, and do not change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_infra_k8s.domain.objects import MACHINE_OWNERS, READY_WHEN_ANNOTATION, WORKLOADS, ObjectKey
from kubevnfm_infra_k8s.domain.reading.readiness import lacks_status
from kubevnfm_infra_k8s.domain.verdicts import Verdict
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited, View
from kubevnfm_infra_k8s.domain.watching.stuck_pods import LOOK_EVERY_S

_UNSEEN: Final = 6.0
"""So many times longer is waited for a kind of which no controller has written a status: it may never write one, or not work yet."""
_OPERATORS: Final = WORKLOADS - MACHINE_OWNERS
"""The kinds that can be controllers."""


@dataclass(frozen=True)
class Patience:
    """How long an object without a status is waited for."""

    unchanged_s: float
    """Since its last change, and since the workloads beside it are ready."""
    limit_s: float

    @property
    def assumption(self) -> str:
        """The assumption of its verdict afterwards."""
        return (
            f"counts as ready without a status, which no controller has written within {self.limit_s:g} s; "
            f"the annotation {READY_WHEN_ANNOTATION} says what to wait for"
        )


@dataclass
class UnseenResources:
    """The custom resources of one wait whose controllers have not been seen to act on them."""

    settle_s: float
    _working_since: float | None = None
    """The loop time from which on all workloads of the wait were ready."""

    @property
    def longest_s(self) -> float:
        """The longest time that is counted."""
        return self.settle_s * _UNSEEN

    def patience(
        self,
        awaited: Sequence[Awaited],
        verdicts: Mapping[ObjectKey, Verdict],
        view: View,
        left_s: Callable[[ObjectKey], float],
    ) -> Mapping[ObjectKey, Patience]:
        """Return the patience with each object that lacks a status.

        ``verdicts``: those of all objects; ``left_s``: the time until the limit of an object, at which it is not to fail for this.
        """
        silent = [
            each
            for each in awaited
            if each.key in view.bodies
            and each.wanted is None
            and not each.only_exists
            and lacks_status(view.bodies[each.key], has_status=each.resource.has_status)
        ]
        if not silent:
            return {}
        now = asyncio.get_running_loop().time()
        if not all(verdicts[each.key].is_current for each in awaited if each.key.group_kind in _OPERATORS):
            self._working_since = None
        elif self._working_since is None:
            self._working_since = now
        working_s = 0.0 if self._working_since is None else now - self._working_since
        seen = {key.group_kind for key, body in view.bodies.items() if body.get("status")}

        def patience(key: ObjectKey) -> Patience:
            unchanged_s = view.unchanged_s(key)
            if left_s(key) <= self.settle_s + LOOK_EVERY_S:
                return Patience(unchanged_s, self.settle_s)
            limit_s = self.settle_s * (1.0 if key.group_kind in seen else _UNSEEN)
            return Patience(min(unchanged_s, working_s), limit_s)

        return {each.key: patience(each.key) for each in silent}

    def is_counting(self, silent: Mapping[ObjectKey, Patience], verdicts: Mapping[ObjectKey, Verdict]) -> bool:
        """Return whether nothing else is waited for, so that the wait ends soon."""
        left = {key for key, verdict in verdicts.items() if not verdict.is_current}
        return bool(left) and left <= silent.keys() and self._working_since is not None
