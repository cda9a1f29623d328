"""Looks at objects when an event says that one has changed, and at all that may have a fault in rounds.

An event is only the reason to look: what counts is the state at that moment. So events may be repeated, late and in another
order. A round finds what no event says, for example that access data end soon, and makes good what a look has left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, get_args

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_clients.ports import Vims
from kubevnfm_clients.vim_views import VimView
from kubevnfm_events import Message
from kubevnfm_events.lcm import InstanceDeleted, InstanceDrifted, InstanceTroubled, OperationChanged
from kubevnfm_events.vim import VimCredentialsExpiring, VimDeregistered, VimRegistered, VimStatusChanged
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Exists, Filter, Op, Query, Sort, Stored

from kubevnfm_lcm_api.faults.alarms import Alarms
from kubevnfm_lcm_api.faults.domain.fault import Findings, ObjectKind
from kubevnfm_lcm_api.faults.domain.rules import (
    OF_VIMS,
    VimAlarm,
    VnfState,
    faults_of_service,
    faults_of_subscription,
    faults_of_vim,
    faults_of_vnf,
)
from kubevnfm_lcm_api.lifecycle.containers import trouble_marks
from kubevnfm_lcm_api.lifecycle.core import drift, instance, occurrence
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.progress import Progress
from kubevnfm_lcm_api.notifications.delivery_record import FAILING_SINCE
from kubevnfm_lcm_api.notifications.domain import subscription
from kubevnfm_lcm_api.siblings import SeenService

log = structlog.get_logger()

_AGAIN_S: Final = 2.0
_PAGE: Final = 500
_FAILED: Final = ("FAILED_TEMP", "FAILED")
_ENDED_WELL: Final = frozenset({"COMPLETED", "ROLLED_BACK"})
_RECENT: Final = timedelta(days=2)
"""A round looks at the failed operations of this time: events have named those before it."""
_NEWEST: Final = Sort("startTime", descending=True)


SeenServices = Callable[[], Awaitable[Sequence[SeenService]]]
"""Returns the services as this gateway hears of them."""


class FaultWatch:
    """Follows events, and looks in rounds."""

    def __init__(
        self, *, store: DocumentStore, alarms: Alarms, vims: Vims, services: SeenServices, clock: Clock
    ) -> None:
        self._store, self._alarms, self._vims, self._services, self._clock = store, alarms, vims, services, clock

    # --- by events ----------------------------------------------------------------------------------------------------

    async def follow(self, delivery: Delivery) -> Verdict:
        """Look at the object of an event."""
        try:
            await self._follow(delivery.envelope.data)
        except VnfmError as error:
            log.warning("faults_not_looked_at", message_id=delivery.envelope.id, reason=str(error))
            return Again(_AGAIN_S)
        return Ack()

    async def _follow(self, event: Message) -> None:
        if isinstance(event, OperationChanged):
            # The other states decide nothing, and what ends well can only clear.
            if event.state in _FAILED or (
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
        await self._alarms.follow(instance_id, partial(self._of_vnf, instance_id))

    async def look_at_vim(self, vim_id: str) -> None:
        """Have the alarms of a VIM agree with its state. Raises StoreUnavailable, OutsideUnavailable."""
        await self._alarms.follow(vim_id, partial(self._of_vim, vim_id))

    async def look_at_subscription(self, subscription_id: str) -> None:
        """Have the alarm of a subscription agree with its deliveries. Raises StoreUnavailable."""
        await self._alarms.follow(subscription_id, partial(self._of_subscription, subscription_id))

    async def _of_vnf(self, instance_id: str) -> Findings:
        stored = await self._store.get(instance.COLLECTION, instance_id)
        record = None if stored is None else InstanceRecord.from_document(stored.body)
        of_it = AllOf([Compare("vnfInstanceId", Op.EQ, [instance_id]), occurrence.PUBLIC])
        newest = [] if record is None else await self._store.find(
            occurrence.COLLECTION, Query(of_it, sort=_NEWEST, limit=1)
        )  # fmt: skip
        mark = None if record is None else await self._store.get(trouble_marks.COLLECTION, instance_id)
        vims: dict[str, VimAlarm] = {}
        for vim_id in () if record is None else record.internals.vim_ids:
            for alarm in (await self._alarms.open_of(vim_id)).values():
                if alarm.body["faultType"] in OF_VIMS:
                    vims[vim_id] = VimAlarm(
                        alarm.id,
                        alarm.body["faultType"],
                        alarm.body["probableCause"],
                        alarm.body["faultDetails"][0],
                        alarm.body["alarmRaisedTime"],
                    )
        operation = OccurrenceRecord.from_document(newest[0].body) if newest else None
        tasks: Sequence[JsonObject] = ()
        if operation is not None and operation.occ.operation_state in _FAILED:
            tasks = await Progress(self._store).operation_tasks(operation)
        trouble = None if mark is None else mark.body
        return faults_of_vnf(VnfState(instance_id, record, operation, tasks, trouble, vims, self._clock.now()))

    async def _of_vim(self, vim_id: str) -> Findings:
        # By the beginning of its id: a view by the id itself calls the VIM.
        found, _ = await self._vims.views({"id": vim_id}, limit=10)
        return faults_of_vim(vim_id, next((each for each in found if each.id == vim_id), None))

    async def _of_subscription(self, subscription_id: str) -> Findings:
        stored = await self._store.get(subscription.COLLECTION, subscription_id)
        return faults_of_subscription(subscription_id, None if stored is None else stored.body, self._clock.now())

    # --- in rounds ----------------------------------------------------------------------------------------------------

    async def look(self) -> None:
        """Look at every object that has a fault, or an alarm. Raises StoreUnavailable, OutsideUnavailable."""
        is_new = await self._alarms.is_new()
        alarms = await self._alarms.all_open()
        by_kind: dict[str, set[str]] = {kind: set() for kind in get_args(ObjectKind)}
        for each in alarms:
            by_kind[each.body["internal"]["kind"]].add(each.body["managedObjectId"])
        # VIMs come later: the service that is away may be vim-registry, without which nothing is known of them.
        for service in await self._services():
            await self._alarms.follow(service.name, partial(_of_service, service))
        failing = {each.id async for each in self._pages(subscription.COLLECTION, Exists(FAILING_SINCE))}
        for subscription_id in sorted(by_kind["subscription"] | failing):
            await self.look_at_subscription(subscription_id)
        away: set[str] = set()
        unknown: OutsideUnavailable | None = None
        try:
            away = await self._look_at_vims(by_kind["vim"])
        except OutsideUnavailable as error:
            unknown = error
        known = {each.body["internal"]["open"] for each in alarms}
        vnfs = by_kind["vnf"] | {each async for each in self._suspects(away, known, is_new=is_new)}
        for instance_id in sorted(vnfs):
            await self.look_at_vnf(instance_id)
        if unknown is not None:
            raise unknown  # the list may lack alarms of VIMs
        if is_new:
            await self._alarms.note_complete(len(await self._alarms.all_open()))

    async def _look_at_vims(self, alarmed: set[str]) -> set[str]:
        """Look at VIMs that have a fault, or an alarm; return those that cannot be used. Raises OutsideUnavailable."""
        types = {
            each.id: {fault.type for fault in faults_of_vim(each.id, each).faults} async for each in self._all_vims()
        }
        for vim_id in sorted(alarmed | {each for each, found in types.items() if found}):
            await self.look_at_vim(vim_id)
        return {each for each, found in types.items() if found & OF_VIMS}

    async def _suspects(self, vim_ids: Iterable[str], known: set[str], *, is_new: bool) -> AsyncIterator[str]:
        """Yield the VNF instances that may have a fault without an alarm."""
        async for stored in self._instances(Exists(drift.PATH)):
            yield stored.id
        async for stored in self._pages(trouble_marks.COLLECTION, Exists("text")):
            yield stored.id
        since = Compare("startTime", Op.GTE, [rfc3339(self._clock.now() - _RECENT)])
        for state in _FAILED:
            in_state = Compare("operationState", Op.EQ, [state])
            # The list of alarms is made from all operations; otherwise from those that may be news.
            of_them = in_state if is_new or state == "FAILED_TEMP" else AllOf([in_state, since])
            async for stored in self._pages(occurrence.COLLECTION, of_them):
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

    async def _all_vims(self) -> AsyncIterator[VimView]:
        after: tuple[str, str] | None = None
        while True:
            page, after = await self._vims.views({}, limit=_PAGE, after=after)
            for each in page:
                yield each
            if after is None:
                return


_NOT_READ: Final[Mapping[str, tuple[str, ...]]] = {
    instance.COLLECTION: ("internal", "instantiatedVnfInfo", "extensions", "vnfConfigurableProperties", "metadata"),
    occurrence.COLLECTION: ("internal", "operationParams", "resourceChanges"),
    subscription.COLLECTION: ("keys", "filter"),
}


async def _of_service(service: SeenService) -> Findings:
    return faults_of_service(service)
