"""The owner of health checks: one runs at a time for an instance, and the last ones are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from kubevnfm_csar.hooks import Point
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, NotFound
from kubevnfm_kit.ids import new_id
from kubevnfm_store.port import AlreadyExists, RevisionConflict

from kubevnfm_infra_k8s.domain.health_checks.record import StoredCheck, results_of
from kubevnfm_infra_k8s.domain.hooks.sequence import hooks_at
from kubevnfm_infra_k8s.domain.ports import LaterHooks, Releases
from kubevnfm_infra_k8s.domain.reconciling.ports import Documents

log = structlog.get_logger()

_MOST: Final = 20
"""Checks that are stored for an instance; beyond it the oldest one goes."""
_MARGIN_S: Final = 120.0
_LONGEST_S: Final = 86_400.0


class Records(Documents[StoredCheck], Protocol):
    """The stored checks."""

    async def of_instance(self, vnf_instance_id: str) -> Sequence[StoredCheck]:
        """Return the checks of an instance, the oldest first, also those that are being removed."""
        ...

    async def insert(self, check: StoredCheck) -> StoredCheck:
        """Store a new check. Raises AlreadyExists while another one of the instance runs."""
        ...

    async def replace(self, check: StoredCheck, /) -> StoredCheck:
        """Write the check if it is at its revision. Raises RevisionConflict."""
        ...


class Work(Protocol):
    """The work on checks."""

    def wake(self, document_id: str) -> None:
        """Have a pass over a check soon."""
        ...


@dataclass(frozen=True)
class HealthCheckOwner:
    """`kubevnfm_clients.multicloud.health_checks.HealthChecks`."""

    records: Records
    releases: Releases
    hooks: LaterHooks
    work: Work
    clock: Clock
    ready_timeout_s: float

    async def create(self, vnf_instance_id: str) -> StoredCheck:
        release = await self.releases.get(vnf_instance_id)
        if release is None or not release.vim_id:
            raise Conflict(f"VNF instance {vnf_instance_id} has no Kubernetes objects in a registered region")
        hooks, _ = await self.hooks.get(vnf_instance_id)
        tests, now = hooks_at(hooks, Point.TEST), rfc3339(self.clock.now())
        limit_s = sum(self.ready_timeout_s if each.timeout_s is None else each.timeout_s for each in tests) + _MARGIN_S
        check = StoredCheck(
            id=new_id(),
            vnf_instance_id=vnf_instance_id,
            vim_id=release.vim_id,
            status="Running",
            started_at=now,
            results=results_of(tests),
            limit_s=min(limit_s, _LONGEST_S),
        )
        try:
            check = await self.records.insert(check if tests else check.ended(now))
        except AlreadyExists as error:
            raise Conflict("a health check of the instance runs: one runs at a time") from error
        await self._make_room(vnf_instance_id)
        if not check.is_settled:
            self.work.wake(check.id)
        log.info("health_check_begun", vnf_instance_id=vnf_instance_id, check_id=check.id, tests=len(tests))
        return check

    async def find(self, vnf_instance_id: str) -> Sequence[StoredCheck]:
        return [each for each in await self.records.of_instance(vnf_instance_id) if not each.is_removed]

    async def get(self, vnf_instance_id: str, check_id: str) -> StoredCheck:
        check = await self.records.get(check_id)
        if check is None or check.vnf_instance_id != vnf_instance_id or check.is_removed:
            raise NotFound(f"VNF instance {vnf_instance_id} has no health check {check_id}")
        return check

    async def delete(self, vnf_instance_id: str, check_id: str) -> None:
        check = await self.get(vnf_instance_id, check_id)
        await self._remove(check)

    async def forget(self, vnf_instance_id: str) -> None:
        """Have all checks of an instance removed that has ended: what one that runs has made meanwhile goes with it."""
        for check in await self.records.of_instance(vnf_instance_id):
            await self._remove(check)

    async def _remove(self, check: StoredCheck) -> None:
        while not check.is_removed:
            try:
                await self.records.replace(check.model_copy(update={"is_removed": True}))
            except RevisionConflict:
                found = await self.records.get(check.id)
                if found is None:
                    return
                check = found
                continue
            break
        self.work.wake(check.id)

    async def _make_room(self, vnf_instance_id: str) -> None:
        """Forget the oldest checks. The objects of their tests have the names of those of newer ones, or go with the instance."""
        ended = [each for each in await self.records.of_instance(vnf_instance_id) if each.is_settled]
        for check in ended[: max(0, len(ended) - _MOST)]:
            try:
                await self.records.delete(check)
            except RevisionConflict:
                log.info("health_check_changed", check_id=check.id)
