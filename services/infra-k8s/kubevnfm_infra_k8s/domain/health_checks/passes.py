"""One pass over a health check: its tests run one after another, also after one that has failed. Safe to repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog
from kubevnfm_csar.hooks import Point
from kubevnfm_events import Event
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.error_text import bounded
from kubevnfm_store.port import RevisionConflict

from kubevnfm_infra_k8s.domain.errors import ForeignObjects, HookFailed, ObjectsNotGone, StillWaiting
from kubevnfm_infra_k8s.domain.health_checks.owner import Records
from kubevnfm_infra_k8s.domain.health_checks.record import StoredCheck, key_of
from kubevnfm_infra_k8s.domain.hooks.running import RUN_LABEL, HookRun, propagation_of, run_label
from kubevnfm_infra_k8s.domain.hooks.sequence import hooks_at
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, ObjectKey, labels_of, uid_of
from kubevnfm_infra_k8s.domain.planned_hook import PlannedHook
from kubevnfm_infra_k8s.domain.ports import Cluster, Expressions, LaterHooks, Releases
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.existing import find_all, served_kinds
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet
from kubevnfm_infra_k8s.domain.release import Release
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait

log = structlog.get_logger()

_WITHIN_S: Final = 8.0
"""The wait for a test in one pass, which is much shorter than the turn of a process."""
_CHANGED: Final = "the VNF was changed meanwhile, and does not have this test any more"


@dataclass(frozen=True)
class HealthCheckPasses:
    """`reconciling.ports.Passes` for health checks."""

    records: Records
    releases: Releases
    hooks: LaterHooks
    expressions: Expressions
    cluster: Cluster
    clock: Clock
    settle_s: float
    ready_timeout_s: float
    again: Callable[[str], None]
    """Has another pass over a check at once."""

    async def bring(self, check: StoredCheck) -> None:
        """Run the tests that have not ended."""
        release = await self.releases.get(check.vnf_instance_id)
        if release is None:
            await self.remove(check)
            return
        stored, secrets = await self.hooks.get(check.vnf_instance_id)
        tests = hooks_at(stored, Point.TEST)
        run = self._run(check, release, self.cluster.hiding(secrets))
        until = asyncio.get_running_loop().time() + _WITHIN_S
        by_key = {each.key: each for each in tests}
        for number, result in enumerate(check.results):
            if result.completed_at is not None:
                continue
            if asyncio.get_running_loop().time() >= until:
                self._wait_on(check)
            check = await self._one(check, number, by_key.get(key_of(result)), run)
        await run.clean(tests, Point.TEST)
        ended = await self.records.replace(check.ended(self._now()))
        log.info("health_check_ended", vnf_instance_id=ended.vnf_instance_id, check_id=ended.id, status=ended.status)

    def _run(self, check: StoredCheck, release: Release, cluster: Cluster) -> HookRun:
        deadline = _deadline(check)
        wait = ReadinessWait(cluster, check.vnf_instance_id, self.clock, deadline, self.settle_s, self.expressions)
        return HookRun(
            wait, self.releases, Progress("tests", _unheard), release,
            run=check.id, attempt=check.id, limit_s=self.ready_timeout_s, within_s=_WITHIN_S,
        )  # fmt: skip

    async def _one(self, check: StoredCheck, number: int, hook: PlannedHook | None, run: HookRun) -> StoredCheck:
        """Run one test; return the check with its result. Raises NotYet."""
        if hook is None:
            return await self._ended(check, number, "Unknown", _CHANGED)
        if check.results[number].started_at is None:
            begun = check.with_result(number, status="Running", started_at=self._now())
            check = await self.records.replace(begun)
        try:
            await run.run_one(hook, Point.TEST, f"test {hook.key}")
        except StillWaiting:
            self._wait_on(await self._confirmed(check, number, hook, run))
        except (HookFailed, ForeignObjects, ObjectsNotGone) as error:
            check = await self._confirmed(check, number, hook, run)
            return await self._ended(check, number, "Failed", str(error))
        check = await self._confirmed(check, number, hook, run)
        return await self._ended(check, number, "Succeeded", "")

    async def _confirmed(self, check: StoredCheck, number: int, hook: PlannedHook, run: HookRun) -> StoredCheck:
        """Return the check with the uid of a test's object, once it has one: the name alone would prove nothing later."""
        uid = _uid_in(run.release, hook.key, check)
        if not uid or check.uids.get(str(number)) == uid:
            return check
        return await self.records.replace(check.with_uid(number, uid))

    def _wait_on(self, check: StoredCheck) -> None:
        self.again(check.id)
        raise NotYet("its tests have not ended")

    async def _ended(self, check: StoredCheck, number: int, status: str, reason: str) -> StoredCheck:
        changes = {"status": status, "completed_at": self._now(), "reason": bounded(self.cluster.masked(reason))}
        return await self.records.replace(check.with_result(number, **changes))

    async def remove(self, check: StoredCheck) -> None:
        """Delete the objects that the check has made, then the check."""
        await self._delete(check)
        await self.records.delete(check)
        log.info("health_check_removed", vnf_instance_id=check.vnf_instance_id, check_id=check.id)

    async def _delete(self, check: StoredCheck) -> None:
        begun = [
            (str(number), key_of(each)) for number, each in enumerate(check.results) if each.started_at is not None
        ]
        served = await served_kinds(self.cluster, [key.api_kind for _, key in begun])
        places = [(resource, key) for _, key in begun if (resource := served[key.api_kind]) is not None]
        found = await find_all(self.cluster, places, self.cluster.get)
        release, numbers = await self.releases.get(check.vnf_instance_id), {key: number for number, key in begun}
        mine = {INSTANCE_LABEL: check.vnf_instance_id, RUN_LABEL: run_label(check.id, check.id, Point.TEST)}
        for resource, key in reversed(places):
            # A kill right after the creation leaves no uid: then it is found as the next pass would find it.
            recorded = check.uids.get(numbers[key]) or _uid_in(release, key, check)
            there = found.get(key, {})
            is_made = uid_of(there) == recorded if recorded else mine.items() <= labels_of(there).items()
            if there and is_made:
                await self.cluster.delete(resource, key, uid=uid_of(there), propagation=propagation_of(key))

    async def look(self, check: StoredCheck) -> None:
        """Nothing of a check that has ended can change."""

    async def note(self, check_id: str, reason: str) -> None:
        """Show why there is no progress; after the time of the check it ends so."""
        check = await self.records.get(check_id)
        if check is None or check.is_settled or check.is_removed:
            return
        is_late = self.clock.now() >= _deadline(check)
        noted = check.ended(self._now(), reason=reason) if is_late else check.model_copy(update={"reason": reason})
        if noted != check:
            with suppress(RevisionConflict):
                await self.records.replace(noted)

    def _now(self) -> str:
        return rfc3339(self.clock.now())


def _uid_in(release: Release | None, key: ObjectKey, check: StoredCheck) -> str:
    """Return the uid of a test's object as its run has stored it; "" if it has none yet, or another check has run the test since."""
    record = None if release is None else release.hook_record(key, Point.TEST)
    return record.uid if record is not None and record.run == check.id else ""


def _deadline(check: StoredCheck) -> datetime:
    return datetime.fromisoformat(check.started_at) + timedelta(seconds=check.limit_s)


async def _unheard(_: Event) -> None:
    """A check is no operation, whose progress would be shown: its document has the state of each test."""
