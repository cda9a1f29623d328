"""Applies the stages of a plan: each begins when the objects that it needs are ready (multicloud.md MC-013, MC-020, MC-021)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from kubevnfm_csar.waits import Wait
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.changing.sending import Sender
from kubevnfm_infra_k8s.domain.errors import (
    FieldConflict,
    ObjectFailed,
    ObjectRefused,
    ObjectsNotReady,
    ObjectsRefused,
    StillWaiting,
)
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Wanted, field_at
from kubevnfm_infra_k8s.domain.planning.order import Wave, waves
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.planning.priorities import Stage, is_awaited, limit_of, stages
from kubevnfm_infra_k8s.domain.ports import Releases
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.release import Entry, Release, Stages, Written
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait

_NAMED: Final = 5
"""The most objects that the progress of a stage names."""
_STORED_EVERY_S: Final = 0.5
"""Stages and waves that end sooner one after the other are stored together. A crash repeats them: their objects are as they were."""
_SHOWN_EVERY_S: Final = 0.25
"""Priorities that end sooner one after the other are shown by the last of them."""
_PASSING: Final = frozenset({"Job", "Pod"})
"""Kinds whose objects end by themselves, and may be deleted then. Custom kinds may be such."""


KeepsData = Callable[[], Awaitable[bool]]
"""Returns whether the data of the persistent volumes that pods have got by now are kept whatever happens (multicloud.md MC-100)."""


@dataclass
class StageRun:
    """The application of the stages of a plan by one attempt."""

    plan: Plan
    wanted: Collection[ObjectKey]
    """The objects to send; the others of the plan are ready."""
    sender: Sender
    wait: ReadinessWait
    releases: Releases
    progress: Progress
    release: Release
    """As it is stored."""
    attempt: str
    limit_s: float
    """The limit of a wait for an object that the order gives none."""
    within_s: float
    """How long a call may wait for the objects of a stage."""
    keeps_data: KeepsData | None = None
    """Asked before each stage; False: a later call begins it."""
    held: set[ObjectKey] = field(default_factory=set)
    """The objects whose waits hold. They stay in it."""
    _met: set[frozenset[ObjectKey]] = field(default_factory=set)
    """The sets of objects of which all are held."""
    _lacking: dict[frozenset[ObjectKey], ObjectKey] = field(default_factory=dict)
    """One object of each other set, that was not held."""
    _is_stored: bool = True
    """Whether the ends of all stages are stored, or being stored."""
    _storing: asyncio.Task[Release] | None = None
    """The write of the ends of stages, beside which the next ones are sent."""
    _storing_at: float = float("-inf")
    """When it began."""
    _is_passing: bool = False
    """Whether a stage whose end is not stored has objects that a repeat could make again after their end."""
    _unshown: Stage | None = None
    """The last priority that has ended, if that is not shown yet."""
    _shown_at: float = float("-inf")

    async def apply(self) -> None:
        """Send the objects of all stages, unless an earlier call has done so, and wait for them.

        The caller stores the release then. Raises StillWaiting.
        """
        self._shown_at = asyncio.get_running_loop().time()
        try:
            await self._apply()
            await self._show_ended()
        except asyncio.CancelledError:
            if self._storing is not None:
                self._storing.cancel()
                self._storing = None
            raise
        except (VnfmError, StillWaiting):
            # The caller reads what exists, and a later call where to continue.
            await self._show_ended()
            await self._store_beside(at_once=True)
            raise
        finally:
            await self._stored()

    async def _apply(self) -> None:
        # From the whole plan, so that the stages are the same ones in a call that finds some of the objects done.
        left = list(stages(self.plan.objects))
        self.held.update(each.key for each in self.plan.objects if each.key not in self.wanted)
        while left:
            for stage in left:
                if self._is_over(stage):
                    self.held |= stage.keys
                elif self._can_begin(stage, self.held):
                    await self._begin(stage)
                    await (self._end(stage) if self._is_done(stage, self.held) else self._store())
            ended = [each for each in left if self._is_over(each) or self._is_done(each, self.held)]
            for stage in ended:
                await self._end(stage)
            numbers = {each.number for each in ended}
            left = [each for each in left if each.number not in numbers]
            if left and not ended:
                await self._await(left)

    @property
    def _position(self) -> Stages:
        return self.release.stages_of(self.attempt)

    def _is_over(self, stage: Stage) -> bool:
        """Return whether an earlier call has ended a stage."""
        return self._position.has_ended(stage.number, is_apart=stage.is_apart)

    def _sent_at(self, stage: Stage) -> datetime | None:
        return self._position.sent_at_of(stage.number, is_apart=stage.is_apart)

    def _are_held(self, keys: frozenset[ObjectKey], held: Set[ObjectKey]) -> bool:
        """Return ``keys <= held``. A thousand stages ask it of the same thousands of objects after each change of one."""
        if keys in self._met:
            return True
        lacking = self._lacking.get(keys)
        if lacking is not None and lacking not in held:
            return False
        lacking = next((each for each in keys if each not in held), None)
        if lacking is not None:
            self._lacking[keys] = lacking
        elif held is self.held:
            self._met.add(keys)
        return lacking is None

    def _can_begin(self, stage: Stage, held: Set[ObjectKey]) -> bool:
        if self._sent_at(stage) is not None or not (stage.is_apart or stage.number == self._position.ended + 1):
            return False
        return all(self._are_held(each, held) for each in stage.needs)

    def _is_done(self, stage: Stage, held: Set[ObjectKey]) -> bool:
        """Return whether all waits of a stage hold that was sent."""
        return self._sent_at(stage) is not None and self._are_held(stage.keys, held)

    async def _begin(self, stage: Stage) -> None:
        """Send a stage. An object that the answer shows ready is held at once: to list it can take longer than the write."""
        await self._store_beside()
        if self.keeps_data is not None and not await self.keeps_data():
            raise StillWaiting
        with _naming([stage]):
            bodies = await self._send(
                [each for each in stage.objects if each.key in self.wanted and not each.is_read_only]
            )
        self.held.update(each.key for each in stage.objects if not self._is_awaited(each))
        # One that is made once may have been found there, by its metadata alone.
        written = [each for each in stage.objects if each.key in bodies and not each.is_create_only]
        self.held.update(
            each.key for each in awaited_among(written, self.release) if self.wait.is_ready_in(bodies[each.key], each)
        )
        self._move(self._position.sending(stage.number, self.wait.clock.now(), is_apart=stage.is_apart))

    async def _end(self, stage: Stage) -> None:
        if self._is_over(stage):
            return
        has_new_jobs = not self.wait.complete <= self.release.complete
        self.release = self.release.completing(self.wait.complete)
        self._move(self._position.ending(stage.number, is_apart=stage.is_apart))
        # A retry after the failure of a later stage must not run Jobs again, which may have been collected by then.
        if has_new_jobs:
            await self._store()
        # Without an order there is nothing to continue with but the wait for all objects.
        elif stage.is_ordered:
            self._is_stored = False
            self._is_passing |= any(each.key.kind in _PASSING or each.key.is_custom for each in stage.objects)
        if stage.is_apart:
            await self._show(stage)
        elif stage.is_ordered:
            self._unshown = stage
            if asyncio.get_running_loop().time() - self._shown_at >= _SHOWN_EVERY_S:
                await self._show_ended()

    async def _show_ended(self) -> None:
        if self._unshown is not None:
            await self._show(self._unshown)
            self._unshown, self._shown_at = None, asyncio.get_running_loop().time()

    async def _show(self, stage: Stage) -> None:
        total = len(stage.objects)
        await self.progress.on(str(stage), "is done", done=total, total=total)

    async def _await(self, left: Sequence[Stage]) -> None:
        """Return when one of the stages that were sent is done, or another one can begin. Raises StillWaiting."""
        await self._show_ended()
        await self._store_beside(at_once=True)
        running = [(each, sent_at) for each in left if (sent_at := self._sent_at(each)) is not None]
        assert running, "the reader of the order refuses cycles"
        objects: list[Wanted] = []
        limits: dict[ObjectKey, datetime] = {}
        for stage, sent_at in running:
            # A call that continues has not sent them itself.
            self.held.update(each.key for each in stage.objects if not self._is_awaited(each))
            mine = [each for each in stage.objects if each.key not in self.held]
            objects += mine
            began = sent_at + self.wait.silence_since(sent_at)
            limits |= {each.key: began + timedelta(seconds=limit_of(each, self.limit_s)) for each in mine}
            named = ", ".join(str(each.key) for each in mine[:_NAMED]) + (", ..." if len(mine) > _NAMED else "")
            if mine:
                message = f"waits since {rfc3339(sent_at)} for {named}"
                await self.progress.on(str(stage), message, done=0, total=len(stage.objects))
        if not objects:
            return

        def is_enough(ready: Collection[ObjectKey]) -> bool:
            held = self.held | set(ready)
            return any(self._is_done(each, held) or self._can_begin(each, held) for each in left)

        with _naming([each for each, _ in running]):
            found = await self.wait.until_enough(
                awaited_among(objects, self.release),
                self.progress,
                limits=limits,
                is_enough=is_enough,
                within_s=self.within_s,
            )
        if found is None:
            raise StillWaiting
        self.held |= set(found)

    def _is_awaited(self, wanted: Wanted) -> bool:
        return is_awaited(wanted) and wanted.key not in self.release.complete

    async def _send(self, objects: Sequence[Wanted]) -> Mapping[ObjectKey, Body]:
        """Return what the API server has answered. The answers to all but the last waves are stored, or being stored."""
        unsent = {each.key for each in objects}
        postponed: list[Wanted] = []
        bodies: dict[ObjectKey, Body] = {}
        for number, wave in enumerate(waves(objects)):
            if number:
                # A rollback after a crash then knows which objects are ours; until then by their label alone. Waves that
                # follow one another without a wait are stored together.
                self._is_stored = False
                await self._store_beside(at_once=bool(wave.after_ready))
            await self._wait_for(wave)
            sent = await self.sender.send([*postponed, *wave.objects], unsent=unsent)
            bodies.update(self._written(sent.bodies, objects))
            postponed = [each for each, _ in sent.refused]
            unsent -= sent.bodies.keys()
        bodies.update(self._written(await self.sender.send_rest(postponed), objects))
        return bodies

    def _written(self, bodies: Mapping[ObjectKey, Body], objects: Sequence[Wanted]) -> Mapping[ObjectKey, Body]:
        written = {each.key: Written.from_body(bodies[each.key], each) for each in objects if each.key in bodies}
        self.release = self.release.written(written)
        return bodies

    async def _wait_for(self, wave: Wave) -> None:
        needed = [Awaited(each.key, each.resource) for each in self.plan.objects if each.key in wave.after_ready]
        await self.wait.until_ready(needed, self.progress)

    def _move(self, position: Stages) -> None:
        self.release = replace(self.release, stages=position)

    async def _store(self) -> None:
        await self._stored()
        self.release = await self.releases.save(self.release)
        self._is_stored, self._is_passing = True, False

    async def _store_beside(self, *, at_once: bool = False) -> None:
        """Begin to store the ends of stages, unless some were stored a moment ago; ``at_once``: in any case."""
        now = asyncio.get_running_loop().time()
        is_due = at_once or self._is_passing or now - self._storing_at >= _STORED_EVERY_S
        if self._is_stored or not is_due:
            return
        await self._stored()
        self._storing = asyncio.create_task(self.releases.save(self.release), name="store-stages")
        self._storing_at, self._is_stored, self._is_passing = now, True, False

    async def _stored(self) -> None:
        """Return when the last write is done. Raises RevisionConflict."""
        if self._storing is not None:
            storing, self._storing = self._storing, None
            self.release = replace(self.release, revision=(await storing).revision)


@contextmanager
def _naming(running: Sequence[Stage]) -> Iterator[None]:
    """Name the stages of the objects in an error of the block."""
    try:
        yield
    except (ObjectRefused, ObjectsRefused, ObjectFailed, ObjectsNotReady, FieldConflict) as error:
        about = error.about if isinstance(error, ObjectFailed | ObjectsNotReady) else frozenset()
        mine = [each for each in running if each.is_ordered and (not about or about & each.keys)]
        if mine:
            error.args = (f"{', '.join(map(str, mine))}: {error}",)
        raise


def awaited_among(objects: Sequence[Wanted], release: Release) -> Sequence[Awaited]:
    """Return those of the objects that can become ready; Jobs that have ended already are not among them."""
    entries = {entry.key: entry for entry in release.entries}
    return [
        _of_entry(each, Entry(each.key, each.file, "", is_shared=True) if each.is_read_only else entries[each.key])
        for each in objects
        if each.resource.is_persistent and (each.is_read_only or not entries[each.key].is_complete)
    ]


def _of_entry(wanted: Wanted, entry: Entry) -> Awaited:
    # One that is only read has no label of ours, so that it is watched by name.
    return Awaited(
        wanted.key,
        wanted.resource,
        is_shared=entry.is_shared,
        uid=entry.uid,
        is_collected_at_end=field_at(wanted.body, "spec", "ttlSecondsAfterFinished") is not None,
        wanted=wanted.artifact.wanted if wanted.artifact is not None else None,
        only_exists=wanted.artifact is not None and wanted.artifact.wait is Wait.EXISTS,
    )
