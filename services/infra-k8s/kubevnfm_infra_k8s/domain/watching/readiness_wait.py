"""Waits until objects are ready: judges each object after each change, with one deadline for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NoReturn

from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.clock import Clock, machine_now
from kubevnfm_kit.printable import printable

from kubevnfm_infra_k8s.domain import step_warnings
from kubevnfm_infra_k8s.domain.errors import Forbidden, ObjectFailed, ObjectsNotReady
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, annotations_of, field_at, name_of
from kubevnfm_infra_k8s.domain.passing_objects import has_done_its_work
from kubevnfm_infra_k8s.domain.ports import Cluster, Expressions
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.kubevirt import DISKS, MACHINE
from kubevnfm_infra_k8s.domain.reading.readiness import judge
from kubevnfm_infra_k8s.domain.verdicts import CURRENT, Evaluation, Observation, Status, Verdict
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited, View, soonest, viewing
from kubevnfm_infra_k8s.domain.watching.ended_jobs import verdicts_on_ended
from kubevnfm_infra_k8s.domain.watching.expressed import Expressed, expressing
from kubevnfm_infra_k8s.domain.watching.not_ready_report import not_ready
from kubevnfm_infra_k8s.domain.watching.stuck_pods import LOOK_EVERY_S, StuckPods
from kubevnfm_infra_k8s.domain.watching.unseen_resources import Patience, UnseenResources

WEBHOOK_PAUSES: Final = BackOff(first_s=1.0, longest_s=8.0)
"""Between attempts to reach a webhook until the deadline (capi.md CR-016)."""
_STORAGE_CLASSES: Final = Resource("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_LONGEST_LOOK_S: Final = 3600.0
_SHOWN_S: Final = 5.0
"""How long the answer to a write is a proof that the object is ready."""


@dataclass(frozen=True)
class _Found:
    ready: frozenset[ObjectKey]
    bodies: Mapping[ObjectKey, Body]


@dataclass(frozen=True)
class ReadinessWait:
    """The wait of one step for objects of one instance."""

    cluster: Cluster
    vnf_instance_id: str
    clock: Clock
    deadline: datetime
    settle_s: float
    expressions: Expressions
    silence_since: Callable[[datetime], timedelta] = lambda _: timedelta()
    """See `Beginning`."""
    complete: set[ObjectKey] = field(default_factory=set)
    """The objects that were seen to have done their work (Jobs, requests of certificates), in all waits of this step."""
    _shown: dict[ObjectKey, float] = field(default_factory=dict)
    """When the answer to a write has shown an object ready; none from before the last wait."""

    async def until_ready(
        self, awaited: Sequence[Awaited], progress: Progress, *, within_s: float | None = None
    ) -> Mapping[ObjectKey, Body] | None:
        """Return the objects when all are ready; None after ``within_s``.

        Raises ObjectFailed if one cannot become ready, and ObjectsNotReady at the deadline.
        """
        if not awaited:
            return {}
        found = await self._until(awaited, progress, {}, lambda ready: len(ready) == len(awaited), within_s)
        return None if found is None else found.bodies

    async def until_all_ready(self, awaited: Sequence[Awaited], progress: Progress, *, within_s: float) -> bool:
        """Return whether all are ready; False after ``within_s``. Raises as `until_ready`.

        Those that the answers to writes have just shown ready are not looked at, unless the others take longer than that lasts.
        """
        loop = asyncio.get_running_loop()
        until, since = loop.time() + within_s, loop.time() - _SHOWN_S
        shown = [at for each in awaited if (at := self._shown.get(each.key, since)) > since]
        left = [each for each in awaited if self._shown.get(each.key, since) <= since]
        if left:
            found = await self._until(
                left, progress, {}, lambda ready: len(ready) == len(left), within_s, beside=len(shown)
            )
            if found is None:
                return False
        if not shown or loop.time() - min(shown) < _SHOWN_S:
            return True
        return await self.until_ready(awaited, progress, within_s=max(0.0, until - loop.time())) is not None

    async def until_enough(
        self,
        awaited: Sequence[Awaited],
        progress: Progress,
        *,
        limits: Mapping[ObjectKey, datetime],
        is_enough: Callable[[Collection[ObjectKey]], bool],
        within_s: float,
    ) -> Collection[ObjectKey] | None:
        """Return those of the objects that are ready as soon as they are enough; None after ``within_s``.

        ``is_enough`` accepts all of them. ``limits``: the time at which each object must have been ready. Raises as `until_ready`.
        """
        found = await self._until(awaited, progress, limits, is_enough, within_s)
        return None if found is None else found.ready

    async def _until(
        self,
        awaited: Sequence[Awaited],
        progress: Progress,
        limits: Mapping[ObjectKey, datetime],
        is_enough: Callable[[Collection[ObjectKey]], bool],
        within_s: float | None,
        *,
        beside: int = 0,
    ) -> _Found | None:
        """``beside``: the number of objects that are ready, and not looked at."""
        loop = asyncio.get_running_loop()
        self._shown.clear()
        # Two limits: the worker gets its place back after ``within_s``, the step fails at its deadline.
        look_until = loop.time() + (_LONGEST_LOOK_S if within_s is None else within_s)
        classes = await self._waiting_classes(awaited)
        pods = StuckPods(self.cluster, self.vnf_instance_id, self.clock)
        unseen = UnseenResources(self.settle_s)
        limits = dict(limits)
        async with (
            viewing(self.cluster, awaited, vnf_instance_id=self.vnf_instance_id) as view,
            expressing(self.expressions, awaited) as expressed,
        ):
            while True:
                await expressed.update(view.bodies)
                verdicts = self._verdicts(awaited, view, classes, expressed)
                silent = unseen.patience(awaited, verdicts, view, partial(self._left_s, limits))
                verdicts |= self._settled(awaited, view, silent)
                verdicts |= await self._judge_ended(awaited, verdicts)
                ready = frozenset(key for key, verdict in verdicts.items() if verdict.is_current)
                if is_enough(ready):
                    if await view.refreshed():
                        continue
                    for key in silent.keys() & ready:
                        step_warnings.note(str(key), silent[key].assumption)
                    return _Found(ready, dict(view.bodies))
                for key in ready & limits.keys():
                    # Its limit is met; if it changes again, that of the step counts.
                    del limits[key]
                ends = {key: min(limits.get(key, self.deadline), self.deadline) for key in verdicts.keys() - ready}
                now = self.clock.now()
                left_s = (min(ends.values()) - now).total_seconds()
                is_last = left_s <= 0 or any(verdict.is_final for verdict in verdicts.values())
                verdicts |= await pods.explain(verdicts, view.bodies, is_last=is_last)
                verdicts = {
                    key: replace(each, message=self.cluster.masked(printable(each.message)))
                    for key, each in verdicts.items()
                }
                waiting = {
                    str(key): each.message or each.status for key, each in verdicts.items() if not each.is_current
                }
                await progress.on_all(waiting, done=beside + len(ready), total=beside + len(awaited))
                self._check_failures(verdicts)
                if left_s <= 0:
                    late = {key: verdicts[key] for key in verdicts if key in ends and ends[key] <= now}
                    await self._raise_late(late, view)
                # The next call would begin to count again. A resource that changes all the time holds no worker.
                is_counting = loop.time() < look_until + unseen.longest_s and unseen.is_counting(silent, verdicts)
                until_s = look_until - loop.time()
                if until_s <= 0 and is_counting:
                    until_s = left_s
                patience_s = min(left_s, until_s, soonest(verdicts.values()) or left_s, LOOK_EVERY_S)
                changed = await view.change(ends.keys(), within_s=patience_s)
                if not changed and loop.time() >= look_until and not is_counting:
                    return None

    def _verdicts(
        self, awaited: Sequence[Awaited], view: View, classes: frozenset[str] | None, expressed: Expressed
    ) -> dict[ObjectKey, Verdict]:
        verdicts = {each.key: self._judge(each, view, classes, expressed) for each in awaited}
        # KubeVirt shows the error for a moment after the disk is ready.
        unready = frozenset(
            key.name
            for key, each in verdicts.items()
            if key.kind in DISKS and not (each.is_current and view.unchanged_s(key) >= self.settle_s)
        )
        verdicts |= {
            each.key: self._judge(each, view, classes, expressed, unready)
            for each in awaited
            if unready and (each.key.group, each.key.kind) == MACHINE
        }
        return verdicts

    def _settled(
        self, awaited: Sequence[Awaited], view: View, silent: Mapping[ObjectKey, Patience]
    ) -> Mapping[ObjectKey, Verdict]:
        """Return the verdicts on objects that lack a status."""
        return {
            each.key: self._verdict(
                each,
                view.bodies[each.key],
                unchanged_s=silent[each.key].unchanged_s,
                settle_s=silent[each.key].limit_s,
            )
            for each in awaited
            if each.key in silent
        }

    async def _raise_late(self, late: Mapping[ObjectKey, Verdict], view: View) -> NoReturn:
        error = ObjectsNotReady(await not_ready(self.cluster, self.vnf_instance_id, late, view.bodies))
        error.about = frozenset(late)
        raise error

    def _left_s(self, limits: Mapping[ObjectKey, datetime], key: ObjectKey) -> float:
        """Return the seconds until the limit of an object."""
        return (min(limits.get(key, self.deadline), self.deadline) - self.clock.now()).total_seconds()

    def left_s(self) -> float:
        """Return the seconds until the deadline."""
        return (self.deadline - self.clock.now()).total_seconds()

    async def is_complete(self, lacking: Sequence[tuple[str, str]], progress: Progress, *, total: int) -> bool:
        """Publish what is lacking, as subjects and messages; return whether nothing is. Raises ObjectsNotReady at the deadline."""
        for subject, message in lacking:
            await progress.on(subject, message, done=total - len(lacking), total=total)
        if lacking and self.left_s() <= 0:
            raise ObjectsNotReady("; ".join(f"{subject}: {message}" for subject, message in lacking))
        return not lacking

    async def _judge_ended(
        self, awaited: Sequence[Awaited], verdicts: Mapping[ObjectKey, Verdict]
    ) -> Mapping[ObjectKey, Verdict]:
        """Return the verdicts on the missing Jobs that may have ended before they were seen complete."""
        missing = [
            each
            for each in awaited
            if each.is_collected_at_end and each.uid and verdicts[each.key].status is Status.NOT_FOUND
        ]
        if not missing:
            return {}
        found = await verdicts_on_ended(self.cluster, missing)
        self.complete.update(key for key, verdict in found.items() if verdict.is_current)
        return found

    def is_ready_in(self, body: Body, each: Awaited) -> bool:
        """Return whether the answer to a write shows the object ready, so that it need not be looked for."""
        if has_done_its_work(body):
            self.complete.add(each.key)
        # Expressions are evaluated in another process, and look at what a controller has written.
        is_ready = each.key in self.complete or (each.wanted is None and self._verdict(each, body).is_current)
        if is_ready:
            self._shown[each.key] = asyncio.get_running_loop().time()
        return is_ready

    def _judge(
        self,
        each: Awaited,
        view: View,
        classes: frozenset[str] | None,
        expressed: Expressed,
        unready: frozenset[str] = frozenset(),
    ) -> Verdict:
        self.complete.update(view.complete)
        if each.key in self.complete:
            return CURRENT
        body = view.bodies.get(each.key)
        evaluated = expressed.result(each.key, body)
        return self._verdict(
            each,
            body,
            unchanged_s=view.unchanged_s(each.key),
            waits_for_consumer=classes,
            evaluated=evaluated,
            unready=unready,
        )

    def _verdict(
        self,
        each: Awaited,
        body: Body | None,
        *,
        unchanged_s: float = 0.0,
        waits_for_consumer: frozenset[str] | None = frozenset(),
        evaluated: Evaluation | None = None,
        unready: frozenset[str] = frozenset(),
        settle_s: float | None = None,
    ) -> Verdict:
        if each.only_exists and body is not None:
            is_ending = field_at(body, "metadata", "deletionTimestamp") is not None
            return Verdict(Status.TERMINATING, "is being deleted") if is_ending else CURRENT
        seen = Observation(
            now=machine_now(self.clock),
            unchanged_s=unchanged_s,
            has_status=each.resource.has_status,
            waits_for_consumer=waits_for_consumer,
            settle_s=self.settle_s if settle_s is None else settle_s,
            only_served=each.only_served,
            until_ended=each.until_ended,
            wanted=each.wanted,
            evaluated=evaluated,
            unready=unready,
        )
        return judge(body, seen)

    @staticmethod
    def _check_failures(verdicts: Mapping[ObjectKey, Verdict]) -> None:
        # Other failures (a crashing pod) can end by themselves, so the wait goes on until the deadline.
        final = {
            key: f"{key}: {each.message}"
            for key, each in verdicts.items()
            if each.status is Status.FAILED and each.is_final
        }
        if final:
            error = ObjectFailed("; ".join(final.values()))
            error.about = frozenset(final)
            raise error

    async def _waiting_classes(self, awaited: Sequence[Awaited]) -> frozenset[str] | None:
        """Return the storage classes that bind a claim only when a pod uses it; "" stands for the default class.

        None if the credentials do not permit to read them, as those of a namespace do not.
        """
        if not any(each.key.kind == "PersistentVolumeClaim" for each in awaited):
            return frozenset()
        names: set[str] = set()
        try:
            classes = await self.cluster.list(_STORAGE_CLASSES)
        except Forbidden:
            return None
        for each in classes:
            if each.get("volumeBindingMode") == "WaitForFirstConsumer":
                names.add(name_of(each))
                if annotations_of(each).get(_DEFAULT_CLASS) == "true":
                    names.add("")
        return frozenset(names)
