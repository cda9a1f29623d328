"""The state that faults are found from: of one object, or of a page of VNF instances by a fixed number of reads."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kubevnfm_clients.multicloud.inventory import Inventory, WatchReport
from kubevnfm_clients.ports import Vims
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import OutsideUnavailable
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, Compare, Op, Query, Sort, Stored

from kubevnfm_lcm_api.faults.alarms import Alarms
from kubevnfm_lcm_api.faults.domain.site_rules import OF_VIMS, VimState
from kubevnfm_lcm_api.faults.domain.vnf_rules import VimAlarm, VnfState
from kubevnfm_lcm_api.lifecycle.containers import trouble_marks
from kubevnfm_lcm_api.lifecycle.core import instance, occurrence
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.progress import Progress
from kubevnfm_lcm_api.views.instance_rows import LARGE_OF_OPERATION, claim_of

FAILED: Final = ("FAILED_TEMP", "FAILED")
PAGE: Final = 100
"""VNF instances whose state is read together."""
_NEWEST: Final = Sort("startTime", descending=True)
_MOST_OPERATIONS: Final = 1000
"""Operations of a page that are read without their content; if there are more, its VNF instances are read one by one."""


class FaultStates:
    """Reads the state of objects."""

    def __init__(self, *, store: DocumentStore, alarms: Alarms, vims: Vims, inventory: Inventory, clock: Clock) -> None:
        self._store, self._alarms, self._vims, self._inventory, self._clock = store, alarms, vims, inventory, clock
        self._progress = Progress(store)

    # --- one object ---------------------------------------------------------------------------------------------------

    async def vnf(self, instance_id: str) -> VnfState:
        """Return the state of a VNF instance. Raises StoreUnavailable."""
        stored = await self._store.get(instance.COLLECTION, instance_id)
        if stored is None:
            return self._vnf(instance_id, None, None, {}, {}, {})
        of_it = AllOf([Compare("vnfInstanceId", Op.EQ, [instance_id]), occurrence.PUBLIC])
        found = await self._store.find(occurrence.COLLECTION, Query(of_it, sort=_NEWEST, limit=1))
        newest = OccurrenceRecord.from_document(found[0].body) if found else None
        marks = await self._marks([instance_id])
        record = InstanceRecord.from_document(stored.body)
        vim_alarms = await self._vim_alarms(record.internals.vim_ids)
        return self._vnf(instance_id, record, newest, await self._tasks([newest]), marks, vim_alarms)

    async def vim(self, vim_id: str) -> VimState:
        """Return the state of a VIM. Raises OutsideUnavailable if vim-registry does not answer."""
        # By the beginning of its id: a view by the id itself calls the VIM.
        found, _ = await self._vims.views({"id": vim_id}, limit=10)
        report = await self.watches(vim_id)
        vim = next((each for each in found if each.id == vim_id), None)
        stale = None if report is None else next((each for each in report.regions if each.vim_id == vim_id), None)
        return VimState(vim_id, vim, stale, report is not None, self._clock.now())

    async def watches(self, vim_id: str | None = None) -> WatchReport | None:
        """Return the watches that do not work, of all VIMs or of one; None: infra-k8s does not answer."""
        try:
            return await self._inventory.watches(vim_id)
        except OutsideUnavailable:
            return None

    async def document(self, collection: str, id: str) -> JsonMapping | None:
        """Return a document that shows the faults of its object; None: it was deleted. Raises StoreUnavailable."""
        stored = await self._store.get(collection, id)
        return None if stored is None else stored.body

    # --- several --------------------------------------------------------------------------------------------------------

    async def vnfs(self, instance_ids: Sequence[str], failed: Collection[str]) -> Sequence[VnfState]:
        """Return the states of VNF instances, of those that can be read together. Raises StoreUnavailable.

        ``failed``: those whose newest operation may have been given up.
        """
        stored = {each.id: each for each in await self._store.get_many(instance.COLLECTION, instance_ids)}
        newest = await self._newest(stored, [each for each in instance_ids if each in failed and each in stored])
        records: dict[str, InstanceRecord] = {}
        for each in stored.values():
            records[each.id] = InstanceRecord.from_document(each.body)
            await asyncio.sleep(0)  # those of a page take long, and requests are served meanwhile
        marks = await self._marks(list(stored))
        vim_alarms = await self._vim_alarms({vim for each in records.values() for vim in each.internals.vim_ids})
        tasks = await self._tasks(newest.values())
        return [
            self._vnf(each, records.get(each), newest.get(each), tasks, marks, vim_alarms)
            for each in instance_ids
            if each not in stored or each in newest
        ]

    async def documents(self, collection: str, ids: Sequence[str]) -> Mapping[str, JsonMapping]:
        """Return those of several objects, which exist. Raises StoreUnavailable."""
        found = await self._store.get_many(collection, ids)
        return {each.id: each.body for each in found}

    async def _newest(
        self, instances: Mapping[str, Stored], failed: Sequence[str]
    ) -> Mapping[str, OccurrenceRecord | None]:
        """Return the newest operation of each VNF instance, None if it is no fault; those of which it is not clear are left out."""
        claims = {each.id: claim for each in instances.values() if (claim := claim_of(each.body)) is not None}
        # The claim of an operation is the newest one: it runs, or waits for a decision.
        operations = await self._operations(claims.values())
        newest: dict[str, OccurrenceRecord | None] = dict.fromkeys(instances.keys() - claims.keys())
        newest |= {each: operations[claim] for each, claim in claims.items() if claim in operations}
        unclaimed = [each for each in failed if each not in claims]
        after_failures = await self._newest_after_failures(unclaimed)
        if after_failures is None:
            return {each: one for each, one in newest.items() if each not in unclaimed}
        operations = await self._operations(after_failures.values())
        return {**newest, **{each: operations.get(name) for each, name in after_failures.items()}}

    async def _newest_after_failures(self, instance_ids: Sequence[str]) -> Mapping[str, str] | None:
        """Return the newest operation of those that have one that is FAILED, by VNF instance; None: too many would be read."""
        if not instance_ids:
            return {}
        of_them = Compare("vnfInstanceId", Op.IN, instance_ids)
        found = await self._heads(of_them, Compare("operationState", Op.EQ, ["FAILED"]))
        ends = _newest_of(found)
        if not ends:
            return {}
        since = Compare("startTime", Op.GTE, [min(str(each.body["startTime"]) for each in ends.values())])
        later = await self._heads(Compare("vnfInstanceId", Op.IN, list(ends)), since)
        if len(found) == _MOST_OPERATIONS or len(later) == _MOST_OPERATIONS:
            return None
        return {each: one.id for each, one in _newest_of(later).items()}

    async def _heads(self, *wanted: Compare) -> Sequence[Stored]:
        of_them = AllOf([*wanted, occurrence.PUBLIC])
        heads = Query(of_them, sort=_NEWEST, limit=_MOST_OPERATIONS, exclude=LARGE_OF_OPERATION)
        return await self._store.find(occurrence.COLLECTION, heads)

    async def _operations(self, ids: Collection[str]) -> Mapping[str, OccurrenceRecord]:
        found = await self._store.get_many(occurrence.COLLECTION, list(ids)) if ids else ()
        records: dict[str, OccurrenceRecord] = {}
        for each in found:
            # Internal ones are no operations of the VNF.
            if not each.body["internal"]["isInternal"]:
                records[each.id] = OccurrenceRecord.from_document(each.body)
            await asyncio.sleep(0)
        return records

    async def _marks(self, instance_ids: Sequence[str]) -> Mapping[str, JsonMapping]:
        found = await self._store.get_many(trouble_marks.COLLECTION, instance_ids) if instance_ids else ()
        return {each.id: each.body for each in found}

    async def _vim_alarms(self, vim_ids: Collection[str]) -> Mapping[str, VimAlarm]:
        return {
            each.body["managedObjectId"]: VimAlarm(
                each.id,
                each.body["faultType"],
                each.body["probableCause"],
                each.body["faultDetails"][0],
                each.body["alarmRaisedTime"],
            )
            for each in (await self._alarms.open_of(*sorted(vim_ids))).values()
            if each.body["faultType"] in OF_VIMS
        }

    async def _tasks(self, operations: Collection[OccurrenceRecord | None]) -> Mapping[str, Sequence[JsonObject]]:
        """Return what explains why operations have failed, by operation."""
        ended = [each for each in operations if each is not None and each.occ.operation_state in FAILED]
        return await self._progress.unfinished_tasks(ended)

    def _vnf(
        self,
        instance_id: str,
        record: InstanceRecord | None,
        operation: OccurrenceRecord | None,
        tasks: Mapping[str, Sequence[JsonObject]],
        marks: Mapping[str, JsonMapping],
        vim_alarms: Mapping[str, VimAlarm],
    ) -> VnfState:
        own = tasks.get(operation.occ.id, ()) if operation is not None else ()
        return VnfState(instance_id, record, operation, own, marks.get(instance_id), vim_alarms, self._clock.now())


def _newest_of(operations: Sequence[Stored]) -> Mapping[str, Stored]:
    """Return the first of each VNF instance."""
    return {str(each.body["vnfInstanceId"]): each for each in reversed(operations)}
