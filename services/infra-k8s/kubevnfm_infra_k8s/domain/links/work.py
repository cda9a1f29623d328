"""The work on virtual links: at once after each write, when an object changes that a link waits for, and in rounds.

A link has one pass at a time, in one process. A region that does not answer holds up its own links only.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Self

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import NotFound, VnfmError
from kubevnfm_store.port import RevisionConflict

from kubevnfm_infra_k8s.domain.concurrency import each_of, is_set
from kubevnfm_infra_k8s.domain.errors import AccessRefused, ClusterUnavailable, ObjectRefused, WebhookUnavailable
from kubevnfm_infra_k8s.domain.links.bringing import Bringing, NotYet, Watched, version_of
from kubevnfm_infra_k8s.domain.links.ports import LinkRecords, Turns, TurnTaken
from kubevnfm_infra_k8s.domain.links.record import Link
from kubevnfm_infra_k8s.domain.ports import Clusters

log = structlog.get_logger()

_PASS_S: Final = 20.0
"""Longest pass: less than the turn of a process that has died lasts."""
_WATCH_S: Final = 60.0
"""How long a change of an object is waited for after a write; rounds look afterwards."""
_LOOK_S: Final = 0.5
"""How often a caller who waits looks at the document: another process may do the work."""
_LOST_WRITES: Final = 20
_UNREGISTERED: Final = "its region is not registered any more"
_AWAY: Final = (ClusterUnavailable, WebhookUnavailable, AccessRefused)
"""The errors of a region, not of one link."""


@dataclass
class ReconcilingWork:
    """`owner.LinkWork`."""

    records: LinkRecords
    turns: Turns
    vims: VimDirectory
    clusters: Clusters
    clock: Clock
    timeout_s: float
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _woken: dict[str, asyncio.Event] = field(default_factory=dict)
    """For each link that has a task."""
    _waiting: dict[str, set[asyncio.Event]] = field(default_factory=lambda: defaultdict(set))
    """For each caller that waits for a link."""
    _regions: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """The rounds of regions."""

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

    def wake(self, link_id: str) -> None:
        event = self._woken.get(link_id)
        if event is not None:
            event.set()
            return
        self._woken[link_id] = asyncio.Event()
        task = asyncio.create_task(self._follow(link_id), name=f"virtual link {link_id}")
        self._tasks[link_id] = task
        task.add_done_callback(lambda _: self._ended(link_id))

    async def decided(self, link_id: str, *, within_s: float) -> Link | None:
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        until = loop.time() + within_s
        self._waiting[link_id].add(changed)
        try:
            while True:
                link = await self.records.get(link_id)
                left_s = until - loop.time()
                if link is None or link.is_decided or left_s <= 0:
                    return link
                await is_set(changed, within_s=min(left_s, _LOOK_S))
        finally:
            self._waiting[link_id].discard(changed)
            if not self._waiting[link_id]:
                del self._waiting[link_id]

    async def bring_all(self) -> None:
        """Have a pass over each link on which there is work; return when the regions that answer are done."""
        await self._in_regions(await self.records.unsettled())

    async def look_at_all(self) -> None:
        """Have a look at each other link for drift."""
        await self._in_regions(await self.records.settled())

    async def _in_regions(self, links: Sequence[tuple[str, str]]) -> None:
        by_region: dict[str, list[str]] = defaultdict(list)
        for link_id, vim_id in links:
            by_region[vim_id].append(link_id)
        for vim_id, ids in by_region.items():
            # A region that is still busy with the last round, since it is slow or silent, gets no second one.
            if vim_id not in self._regions:
                task = asyncio.create_task(self._in_region(ids), name=vim_id)
                self._regions[vim_id] = task
                task.add_done_callback(self._round_ended)
        begun = [self._regions[vim_id] for vim_id in by_region if vim_id in self._regions]
        if begun:
            await asyncio.wait(begun, timeout=_PASS_S)

    async def _in_region(self, ids: Sequence[str]) -> None:
        is_away = asyncio.Event()

        async def one(link_id: str) -> None:
            if is_away.is_set():
                return
            try:
                await self.one_pass(link_id)
            except NotYet:
                return
            except _AWAY as error:
                log.info("region_away", link_id=link_id, reason=str(error))
                is_away.set()
            except Exception:  # a fault of ours with one link must not stop the others
                log.exception("virtual_link_work_failed", link_id=link_id)

        await each_of(ids, one)

    async def _follow(self, link_id: str) -> None:
        """Have passes over a link until there is no more work, or only rounds can bring news."""
        woken = self._woken[link_id]
        loop = asyncio.get_running_loop()
        until = loop.time() + _WATCH_S
        while True:
            woken.clear()
            watched: Watched | None = None
            try:
                await self.one_pass(link_id, turn_within_s=_PASS_S)
            except NotYet as reason:
                watched = reason.watched
            except _AWAY as error:
                log.info("region_away", link_id=link_id, reason=str(error))
                return
            if woken.is_set():
                until = loop.time() + _WATCH_S
                continue
            if watched is None or loop.time() >= until:
                return
            await self._until_changed(link_id, watched, woken, within_s=until - loop.time())

    async def one_pass(self, link_id: str, *, turn_within_s: float = 0.0) -> None:
        """Bring a link to what its document says, or look at it. Raises NotYet, and what its region raises."""
        try:
            async with self.turns.held(f"link/{link_id}", within_s=turn_within_s), asyncio.timeout(_PASS_S):
                for _ in range(_LOST_WRITES):
                    link = await self.records.get(link_id)
                    if link is None:
                        return None
                    with suppress(RevisionConflict):  # a user has changed it meanwhile
                        return await self._pass(link)
        except TurnTaken:
            raise NotYet("another process works on it") from None
        except TimeoutError as error:
            raise ClusterUnavailable(f"virtual link {link_id}: not done within {_PASS_S:.0f} s") from error
        finally:
            for waiting in self._waiting.get(link_id, ()):
                waiting.set()

    async def _pass(self, link: Link) -> None:
        try:
            vim = await self.vims.connection(VimConnection(vim_id=link.vim_id))
        except NotFound:
            if link.is_removed:
                log.warning("virtual_link_left", link_id=link.id, reason=_UNREGISTERED)
                await self.records.delete(link)
            elif link.status_detail != _UNREGISTERED:
                now = rfc3339(self.clock.now())
                update = {"status": "FAILED", "status_detail": _UNREGISTERED, "reached": link.wanted, "updated_at": now}
                await self.records.replace(link.model_copy(update=update))
            return
        async with self.clusters.cluster(vim) as cluster:
            bringing = Bringing(self.records, self.turns, cluster, self.clock, self.timeout_s)
            try:
                if link.is_removed:
                    await bringing.remove(link)
                elif link.is_settled:
                    await bringing.look(link)
                else:
                    await bringing.bring(link)
            except (NotYet, *_AWAY) as reason:
                await bringing.note(link.id, str(reason))
                raise
            except ObjectRefused as refusal:
                # The next round tries again: the permissions of the VIM or an admission may change.
                await bringing.note(link.id, str(refusal))
                raise NotYet(str(refusal)) from refusal

    async def _until_changed(self, link_id: str, watched: Watched, woken: asyncio.Event, *, within_s: float) -> None:
        """Return when the object changes, or the link is woken, or after this time."""
        link = await self.records.get(link_id)
        if link is None:
            woken.set()
            return
        key = watched.key
        vim = await self.vims.connection(VimConnection(vim_id=link.vim_id))

        async def changes() -> None:
            async with self.clusters.cluster(vim) as cluster:
                following = cluster.follow(watched.resource, namespace=key.namespace, name=key.name)
                async with aclosing(following) as seen:
                    async for news in seen:
                        if not any(version_of(body) == watched.version for body in news.found.values()):
                            return

        followed, called = asyncio.create_task(changes()), asyncio.create_task(woken.wait())
        try:
            await asyncio.wait({followed, called}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (followed, called):
                task.cancel()
            results = await asyncio.gather(followed, called, return_exceptions=True)
        for result in results:
            if isinstance(result, VnfmError):
                log.info("virtual_link_not_watched", link_id=link_id, reason=str(result))
            elif isinstance(result, Exception):
                raise result

    def _round_ended(self, task: asyncio.Task[None]) -> None:
        self._regions.pop(task.get_name())
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("virtual_link_round_failed", vim_id=task.get_name(), exc_info=error)

    def _ended(self, link_id: str) -> None:
        task = self._tasks.pop(link_id)
        woken = self._woken.pop(link_id)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("virtual_link_work_failed", link_id=link_id, exc_info=error)
        elif woken.is_set() and not task.cancelled():
            self.wake(link_id)
