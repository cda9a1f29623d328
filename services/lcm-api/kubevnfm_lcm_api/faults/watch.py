"""Looks at objects when an event says that one has changed, and at all that may have a fault in rounds.

An event is only the reason to look: what counts is the state at that moment. So events may be repeated, late and in another
order. A round finds what no event says, for example that access data end soon, and makes good what a look has left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, get_args

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_clients.multicloud.inventory import Inventory, WatchReport
from kubevnfm_clients.ports import Vims
from kubevnfm_clients.vim_views import VimView
from kubevnfm_events import Message
from kubevnfm_events.lcm import InstanceDeleted, InstanceDrifted, InstanceTroubled, OperationChanged
from kubevnfm_events.vim import VimCredentialsExpiring, VimDeregistered, VimRegistered, VimStatusChanged
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.outages import unless_said
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Exists, Filter, Op, Query, Stored

from kubevnfm_lcm_api import measurement_sources
from kubevnfm_lcm_api.faults.alarms import Alarms, agrees
from kubevnfm_lcm_api.faults.domain.fault import Findings, ObjectKind
from kubevnfm_lcm_api.faults.domain.site_rules import (
    OF_VIMS,
    ServiceState,
    VimState,
    faults_of_service,
    faults_of_source,
    faults_of_subscription,
    faults_of_vim,
)
from kubevnfm_lcm_api.faults.domain.vnf_rules import faults_of_vnf
from kubevnfm_lcm_api.faults.states import FAILED, PAGE, FaultStates
from kubevnfm_lcm_api.lifecycle.containers import trouble_marks
from kubevnfm_lcm_api.lifecycle.core import drift, instance, occurrence
from kubevnfm_lcm_api.measurement_sources import recently_asked
from kubevnfm_lcm_api.notifications.delivery_record import FAILING_SINCE
from kubevnfm_lcm_api.notifications.domain import subscription
from kubevnfm_lcm_api.siblings import SeenService

log = structlog.get_logger()

_AGAIN_S: Final = 2.0
_PAGE: Final = 500
_ENDED_WELL: Final = frozenset({"COMPLETED", "ROLLED_BACK"})
_RECENT: Final = timedelta(days=2)
"""A round looks at the failed operations of this time: events have named those before it."""


@dataclass(frozen=True)
class _OfDocuments:
    """A kind of objects whose faults are those that the document of each shows."""

    collection: str
    faults: Callable[[str, JsonMapping | None, datetime], Findings]
    """Called with id, document (None: there is none) and the time."""


_SUBSCRIPTIONS: Final = _OfDocuments(subscription.COLLECTION, faults_of_subscription)
_SOURCES: Final = _OfDocuments(measurement_sources.COLLECTION, faults_of_source)
SeenServices = Callable[[], Awaitable[Sequence[SeenService]]]
"""Returns the services as this gateway hears of them."""


class FaultWatch:
    """Follows events, and looks in rounds."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        alarms: Alarms,
        vims: Vims,
        inventory: Inventory,
        services: SeenServices,
        clock: Clock,
    ) -> None:
        self._store, self._alarms, self._vims, self._services, self._clock = store, alarms, vims, services, clock
        self._states = FaultStates(store=store, alarms=alarms, vims=vims, inventory=inventory, clock=clock)

    # --- by events ----------------------------------------------------------------------------------------------------

    async def follow(self, delivery: Delivery) -> Verdict:
        """Look at the object of an event."""
        try:
            await self._follow(delivery.envelope.data)
        except VnfmError as error:
            unless_said(error).warning("faults_not_looked_at", message_id=delivery.envelope.id, reason=str(error))
            return Again(_AGAIN_S)
        return Ack()

    async def _follow(self, event: Message) -> None:
        if isinstance(event, OperationChanged):
            # The other states decide nothing, and what ends well can only clear.
            if event.state in FAILED or (
                event.state in _ENDED_WELL and await self._alarms.open_of(event.vnf_instance_id)
            ):
                await self.look_at_vnf(event.vnf_instance_id)
        elif isinstance(event, InstanceDrifted | InstanceTroubled):
            await self.look_at_vnf(event.vnf_instance_id)
        elif isinstance(event, InstanceDeleted):
            if await self._alarms.open_of(event.vnf_instance_id):
                await self.look_at_vnf(event.vnf_instance_id)
        elif isinstance(event, VimDeregistered):
            for vim_id in event.vim_ids:
                await self._look_at_vim_and_vnfs(vim_id)
        elif isinstance(event, VimCredentialsExpiring):
            await self.look_at_vim(event.vim_id)
        elif isinstance(event, VimStatusChanged | VimRegistered):
            await self._look_at_vim_and_vnfs(event.vim_id)

    async def _look_at_vim_and_vnfs(self, vim_id: str) -> None:
        await self.look_at_vim(vim_id)
        async for stored in self._instances(Compare("internal/vimIds", Op.EQ, [vim_id])):
            await self.look_at_vnf(stored.id)

    # --- one object ---------------------------------------------------------------------------------------------------

    async def look_at_vnf(self, instance_id: str) -> None:
        """Have the alarms of a VNF instance agree with its state. Raises StoreUnavailable."""

        async def look() -> Findings:
            return faults_of_vnf(await self._states.vnf(instance_id))

        await self._alarms.follow(instance_id, look)

    async def look_at_vim(self, vim_id: str) -> None:
        """Have the alarms of a VIM agree with its state. Raises StoreUnavailable, OutsideUnavailable."""

        async def look() -> Findings:
            return faults_of_vim(await self._states.vim(vim_id))

        await self._alarms.follow(vim_id, look)

    async def _look_at_document(self, kind: _OfDocuments, id: str) -> None:
        """Have the alarm of an object agree with its document. Raises StoreUnavailable."""

        async def look() -> Findings:
            return kind.faults(id, await self._states.document(kind.collection, id), self._clock.now())

        await self._alarms.follow(id, look)

    # --- in rounds ----------------------------------------------------------------------------------------------------

    async def look(self) -> None:
        """Compare every object that has a fault, or an alarm, with its alarms, and look at those that differ.

        Raises StoreUnavailable, OutsideUnavailable.
        """
        is_new = await self._alarms.is_new()
        alarms = await self._alarms.all_open()
        by_kind: dict[str, set[str]] = {kind: set() for kind in get_args(ObjectKind)}
        for each in alarms:
            by_kind[each.body["internal"]["kind"]].add(each.body["managedObjectId"])
        watches = await self._states.watches()
        # VIMs come later: the service that is away may be vim-registry, without which nothing is known of them.
        for service in await self._services():
            unwatched = None if watches is None else watches.unwatched_since
            state = ServiceState(service, unwatched, self._clock.now())
            await self._alarms.follow(service.name, partial(_found, faults_of_service(state)))
        failing = {each.id async for each in self._pages(subscription.COLLECTION, Exists(FAILING_SINCE))}
        await self._compare_documents(_SUBSCRIPTIONS, by_kind["subscription"] | failing)
        silent = {
            each.id async for each in self._pages(measurement_sources.COLLECTION, recently_asked(self._clock.now()))
        }
        await self._compare_documents(_SOURCES, by_kind["source"] | silent)
        away: set[str] = set()
        unknown: OutsideUnavailable | None = None
        try:
            away = await self._compare_vims(by_kind["vim"], watches)
        except OutsideUnavailable as error:
            unknown = error
        known = {each.body["internal"]["open"] for each in alarms}
        failed = {each.body["managedObjectId"] for each in alarms if each.body["faultType"] == "operation-failed"}
        vnfs = by_kind["vnf"] | {each async for each in self._suspects(away, known, failed, is_new=is_new)}
        await self._compare_vnfs(vnfs, failed)
        if unknown is not None:
            raise unknown  # the list may lack alarms of VIMs
        if is_new:
            await self._alarms.note_complete(len(await self._alarms.all_open()))

    async def _compare_vnfs(self, instance_ids: set[str], failed: set[str]) -> None:
        for page in _paged(instance_ids):
            known = await self._alarms.open_of_each(page)
            agreeing = set[str]()
            for state in await self._states.vnfs(page, failed):
                if agrees(known[state.instance_id], faults_of_vnf(state)):
                    agreeing.add(state.instance_id)
                await asyncio.sleep(0)
            for instance_id in page:
                if instance_id not in agreeing:
                    await self.look_at_vnf(instance_id)

    async def _compare_documents(self, kind: _OfDocuments, ids: set[str]) -> None:
        for page in _paged(ids):
            known = await self._alarms.open_of_each(page)
            documents, now = await self._states.documents(kind.collection, page), self._clock.now()
            for each in page:
                if not agrees(known[each], kind.faults(each, documents.get(each), now)):
                    await self._look_at_document(kind, each)

    async def _compare_vims(self, alarmed: set[str], watches: WatchReport | None) -> set[str]:
        """Compare VIMs that have a fault, or an alarm; return those that cannot be used. Raises OutsideUnavailable."""
        stale = {} if watches is None else {each.vim_id: each for each in watches.regions}
        away, gone = set[str](), set(alarmed)
        async for page in self._pages_of_vims():
            now = self._clock.now()
            states = [VimState(each.id, each, stale.get(each.id), watches is not None, now) for each in page]
            findings = {each.vim_id: faults_of_vim(each) for each in states}
            asked = sorted(each for each, found in findings.items() if found.faults or each in alarmed)
            known = await self._alarms.open_of_each(asked)
            for vim_id in asked:
                if not agrees(known[vim_id], findings[vim_id]):
                    await self.look_at_vim(vim_id)
            away |= {each for each, found in findings.items() if any(one.type in OF_VIMS for one in found.faults)}
            gone -= findings.keys()
        for vim_id in sorted(gone):
            await self.look_at_vim(vim_id)
        return away

    async def _suspects(
        self, vim_ids: Iterable[str], known: set[str], failed: set[str], *, is_new: bool
    ) -> AsyncIterator[str]:
        """Yield the VNF instances that may have a fault without an alarm; add those with an operation that has failed to ``failed``."""
        async for stored in self._instances(Exists(drift.PATH)):
            yield stored.id
        async for stored in self._pages(trouble_marks.COLLECTION, Exists("text")):
            yield stored.id
        since = Compare("startTime", Op.GTE, [rfc3339(self._clock.now() - _RECENT)])
        for state in FAILED:
            in_state = Compare("operationState", Op.EQ, [state])
            # The list of alarms is made from all operations; otherwise from those that may be news.
            of_them = in_state if is_new or state == "FAILED_TEMP" else AllOf([in_state, since])
            async for stored in self._pages(occurrence.COLLECTION, of_them):
                failed.add(str(stored.body["vnfInstanceId"]))
                yield str(stored.body["vnfInstanceId"])
        for vim_id in vim_ids:
            async for stored in self._instances(Compare("internal/vimIds", Op.EQ, [vim_id])):
                if not any(f"{stored.id}/{kind}/{vim_id}" in known for kind in OF_VIMS):
                    yield stored.id

    def _instances(self, which: Filter) -> AsyncIterator[Stored]:
        return self._pages(instance.COLLECTION, which)

    async def _pages(self, collection: str, which: Filter) -> AsyncIterator[Stored]:
        """Yield the documents by id, without the large attributes; ``which`` needs an index."""
        after: tuple[None, str] | None = None
        while True:
            page = await self._store.find(
                collection, Query(which, after=after, limit=_PAGE, exclude=_NOT_READ.get(collection, ()))
            )
            for stored in page:
                yield stored
            if len(page) < _PAGE:
                return
            after = (None, page[-1].id)

    async def _pages_of_vims(self) -> AsyncIterator[Sequence[VimView]]:
        after: tuple[str, str] | None = None
        while True:
            page, after = await self._vims.views({}, limit=PAGE, after=after)
            yield page
            if after is None:
                return


def _paged(ids: Iterable[str]) -> Iterator[Sequence[str]]:
    listed = sorted(ids)
    for begin in range(0, len(listed), PAGE):
        yield listed[begin : begin + PAGE]


_NOT_READ: Final[Mapping[str, tuple[str, ...]]] = {
    instance.COLLECTION: ("internal", "instantiatedVnfInfo", "extensions", "vnfConfigurableProperties", "metadata"),
    occurrence.COLLECTION: ("internal", "operationParams", "resourceChanges"),
    subscription.COLLECTION: ("keys", "filter"),
}


async def _found(findings: Findings) -> Findings:
    return findings
