"""The work on documents: at once after each write, when an object changes that one waits for, and in rounds.

A document has one pass at a time, in one process. A region that does not answer holds up its own documents only.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Generic, Self

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import NotFound, OutsideUnavailable, VnfmError
from kubevnfm_kit.outages import unless_said
from kubevnfm_kit.request_ids import for_all
from kubevnfm_store.port import RevisionConflict

from kubevnfm_infra_k8s.domain.concurrency import each_of, is_set
from kubevnfm_infra_k8s.domain.errors import AccessRefused, ClusterUnavailable, ObjectRefused, WebhookUnavailable
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters
from kubevnfm_infra_k8s.domain.reconciling.news import NotYet, Watched, version_of
from kubevnfm_infra_k8s.domain.reconciling.ports import D, Documents, Passes, Regions, Turns, TurnTaken

log = structlog.get_logger()

_PASS_S: Final = 20.0
"""Longest work in a region in one pass."""
_TURN_S: Final = 25.0
"""Longest pass: less than the turn of a process that has died lasts."""
_WATCH_S: Final = 60.0
"""How long a change of an object is waited for after a write; rounds look afterwards."""
_MOST_WATCHED: Final = 8
"""Objects whose changes a document waits for at the same time."""
_LOOK_S: Final = 0.5
"""How often a caller who waits looks at the document: another process may do the work."""
_LOST_WRITES: Final = 20
_UNREGISTERED: Final = "its region is not registered any more"
_AWAY: Final = (ClusterUnavailable, WebhookUnavailable, AccessRefused)
"""The errors of a region, not of one document."""


@dataclass
class ReconcilingWork(Generic[D]):
    """The work on one kind of document."""

    name: str
    """The kind, such as ``link``: in stored names of turns, and in what is logged."""
    records: Documents[D]
    turns: Turns
    regions: Regions
    vims: VimDirectory
    clusters: Clusters
    passes: Callable[[Cluster], Passes[D]]
    clock: Clock
    pass_s: float = _PASS_S
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _woken: dict[str, asyncio.Event] = field(default_factory=dict)
    """For each document that has a task."""
    _waiting: dict[str, set[asyncio.Event]] = field(default_factory=lambda: defaultdict(set))
    """For each caller that waits for a document."""
    _regions: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """The rounds of regions: those with work, and those that look for drift, which no work waits for."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Yield the work; leaving ends it. The next process that looks does what is unfinished."""
        try:
            yield self
        finally:
            tasks = [*self._tasks.values(), *self._regions.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self, document_id: str) -> None:
        event = self._woken.get(document_id)
        if event is not None:
            event.set()
            return
        self._woken[document_id] = asyncio.Event()
        task = for_all(self._follow(document_id), name=f"{self.name} {document_id}")
        self._tasks[document_id] = task
        task.add_done_callback(lambda _: self._ended(document_id))

    async def decided(self, document_id: str, *, within_s: float) -> D | None:
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        until = loop.time() + within_s
        self._waiting[document_id].add(changed)
        try:
            while True:
                document = await self.records.get(document_id)
                left_s = until - loop.time()
                if document is None or document.is_decided or left_s <= 0:
                    return document
                await is_set(changed, within_s=min(left_s, _LOOK_S))
        finally:
            self._waiting[document_id].discard(changed)
            if not self._waiting[document_id]:
                del self._waiting[document_id]

    async def bring_all(self) -> None:
        """Have a pass over each document on which there is work; return when the regions that answer are done."""
        await self._in_regions("work", await self.records.unsettled())

    async def has_work(self) -> bool:
        """Return whether `bring_all` would have a document."""
        return await self.records.has_unsettled()

    async def look_at_all(self) -> None:
        """Have a look at each other document for drift."""
        await self._in_regions("drift", await self.records.settled())

    async def _in_regions(self, what: str, documents: Sequence[tuple[str, str]]) -> None:
        by_region: dict[str, list[str]] = defaultdict(list)
        for document_id, vim_id in documents:
            by_region[f"{what} {vim_id}"].append(document_id)
        for name, ids in by_region.items():
            # A region that is still busy with the last round of this kind, since it is slow or silent, gets no second one.
            if name not in self._regions:
                task = asyncio.create_task(self._in_region(ids), name=name)
                self._regions[name] = task
                task.add_done_callback(self._round_ended)
        begun = [self._regions[name] for name in by_region if name in self._regions]
        if begun:
            await asyncio.wait(begun, timeout=_PASS_S)

    async def _in_region(self, ids: Sequence[str]) -> None:
        is_away = asyncio.Event()

        async def one(document_id: str) -> None:
            if is_away.is_set():
                return
            try:
                await self.one_pass(document_id)
            except NotYet:
                return
            except _AWAY as error:
                unless_said(error).info("region_away", kind=self.name, document_id=document_id, reason=str(error))
                is_away.set()
            except Exception:  # a fault of ours with one document must not stop the others
                log.exception("document_work_failed", kind=self.name, document_id=document_id)

        await each_of(ids, one)

    async def _follow(self, document_id: str) -> None:
        """Have passes over a document until there is no more work, or only rounds can bring news."""
        woken = self._woken[document_id]
        loop = asyncio.get_running_loop()
        until = loop.time() + _WATCH_S
        while True:
            woken.clear()
            watched: Sequence[Watched] = ()
            try:
                await self.one_pass(document_id, turn_within_s=_PASS_S)
            except NotYet as reason:
                watched = reason.watched
            except _AWAY as error:
                unless_said(error).info("region_away", kind=self.name, document_id=document_id, reason=str(error))
                return
            if woken.is_set():
                until = loop.time() + _WATCH_S
                continue
            if not watched or loop.time() >= until:
                return
            await self._until_changed(document_id, watched, woken, within_s=until - loop.time())

    async def one_pass(self, document_id: str, *, turn_within_s: float = 0.0) -> None:
        """Bring a document to what its document says, or look at it. Raises NotYet, and what its region raises."""
        try:
            async with self.turns.held(f"{self.name}/{document_id}", within_s=turn_within_s), asyncio.timeout(_TURN_S):
                for _ in range(_LOST_WRITES):
                    document = await self.records.get(document_id)
                    if document is None:
                        return None
                    with suppress(RevisionConflict):  # a user has changed it meanwhile
                        return await self._pass(document)
        except TurnTaken:
            raise NotYet("another process works on it") from None
        except TimeoutError as error:
            raise ClusterUnavailable(f"{self.name} {document_id}: not done within {_TURN_S:.0f} s") from error
        finally:
            for waiting in self._waiting.get(document_id, ()):
                waiting.set()

    async def _pass(self, document: D) -> None:
        # Neither objects nor documents change meanwhile. The first round after it looks at everything.
        try:
            if document.vim_id in await self.regions.suspensions():
                return
        except OutsideUnavailable as error:
            raise NotYet(str(error)) from error
        try:
            vim = await self.vims.connection(VimConnection(vim_id=document.vim_id))
        except NotFound:
            if document.is_removed:
                log.warning("document_left", kind=self.name, document_id=document.id, reason=_UNREGISTERED)
                await self.records.delete(document)
            else:
                await self.records.lose_region(document, _UNREGISTERED, now=rfc3339(self.clock.now()))
            return
        async with self.clusters.cluster(vim) as cluster:
            passes = self.passes(cluster)
            try:
                await self._work(passes, document)
            except (NotYet, *_AWAY) as reason:
                await passes.note(document.id, str(reason))
                raise
            except ObjectRefused as refusal:
                # The next round tries again: the permissions of the VIM or an admission may change.
                await passes.note(document.id, str(refusal))
                raise NotYet(str(refusal)) from refusal

    async def _work(self, passes: Passes[D], document: D) -> None:
        """Do what is to be done in the region. Raises ClusterUnavailable after a time."""
        try:
            async with asyncio.timeout(self.pass_s):
                if document.is_removed:
                    await passes.remove(document)
                elif document.is_settled:
                    await passes.look(document)
                else:
                    await passes.bring(document)
        except TimeoutError as error:
            raise ClusterUnavailable(f"the region did not do all of it within {self.pass_s:g} s") from error

    async def _until_changed(
        self, document_id: str, watched: Sequence[Watched], woken: asyncio.Event, *, within_s: float
    ) -> None:
        """Return when one of the objects changes, or the document is woken, or after this time."""
        document = await self.records.get(document_id)
        if document is None:
            woken.set()
            return
        vim = await self.vims.connection(VimConnection(vim_id=document.vim_id))

        async def change_of(one: Watched) -> None:
            async with self.clusters.cluster(vim) as cluster:
                following = cluster.follow(one.resource, namespace=one.key.namespace, name=one.key.name)
                async with aclosing(following) as seen:
                    async for news in seen:
                        if not any(version_of(body) == one.version for body in news.found.values()):
                            return

        tasks: list[asyncio.Task[object]] = [asyncio.create_task(change_of(each)) for each in watched[:_MOST_WATCHED]]
        tasks.append(asyncio.create_task(woken.wait()))
        try:
            await asyncio.wait(tasks, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, VnfmError):
                log.info("document_not_watched", kind=self.name, document_id=document_id, reason=str(result))
            elif isinstance(result, Exception):
                raise result

    def _round_ended(self, task: asyncio.Task[None]) -> None:
        self._regions.pop(task.get_name())
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("document_round_failed", round=task.get_name(), exc_info=error)

    def _ended(self, document_id: str) -> None:
        task = self._tasks.pop(document_id)
        woken = self._woken.pop(document_id)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("document_work_failed", document_id=document_id, exc_info=error)
        elif woken.is_set() and not task.cancelled():
            self.wake(document_id)
