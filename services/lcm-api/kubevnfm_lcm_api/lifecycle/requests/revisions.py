"""The revisions of a multi-cloud VNF, and what of them a request for an earlier one needs (multicloud.md MC-042)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_secrets import KeyRing, revealed
from kubevnfm_sol.lcm import OperationState
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import AllOf, AnyOf, Compare, Exists, Filter, Op, Query, Sort, Stored, by

from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.kind import UnderChange
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.revision import NUMBER, Inputs, Revision
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES

_LARGE: Final = ("internal/draft", "internal/steps", "operationParams", "resourceChanges")
"""The parts of an occurrence that a list does not show: values alone may have megabytes."""


@dataclass(frozen=True)
class Kept:
    """A revision, and the operation that has made it."""

    revision: Revision
    occurrence_id: str
    at: str
    state: OperationState


@dataclass(frozen=True)
class Revisions:
    """The revisions of instances; ``most``: so many of the newest ones are offered, and always the newest that was READY."""

    store: DocumentStore
    most: int

    async def newest_first(
        self, record: InstanceRecord, *, limit: int, below: int | None = None
    ) -> tuple[Sequence[Kept], bool]:
        """Return up to ``limit`` revisions with numbers below this, and whether there are more."""
        wanted = await self._offered(record)
        if below is not None:
            wanted = [*wanted, Compare(NUMBER, Op.LT, [below])]
        found = await self._find(wanted, limit + 1, exclude=_LARGE)
        return [_kept(each, record) for each in found[:limit]], len(found) > limit

    async def get(self, record: InstanceRecord, number: int) -> tuple[Kept, Inputs] | None:
        """Return a revision with its inputs; None if there is none of this number, or no longer."""
        found = await self._find([*await self._offered(record), Compare(NUMBER, Op.EQ, [number])], 1)
        if not found:
            return None
        stored = OccurrenceRecord.from_document(found[0].body)
        inputs = SEQUENCES.draft(stored.plan, stored.draft).inputs
        assert inputs is not None
        return _kept(found[0], record), inputs

    async def is_newest(self, vnf: UnderChange, draft: Draft, ring: KeyRing) -> bool:
        """Return whether a change would make what the newest revision has made, from the same inputs."""
        internals = vnf.record.internals
        inputs = draft.inputs
        if inputs is None or not inputs.digest or not internals.revision:
            return False
        held = vnf.package, internals.networks, internals.volumes
        if (inputs.package, inputs.networks, inputs.volumes) != held:
            return False
        number = Compare(NUMBER, Op.EQ, [internals.revision])
        found = await self._find([by(vnfInstanceId=vnf.record.vnf.id), number], 1, exclude=_LARGE)
        newest = _kept(found[0], vnf.record) if found else None
        if newest is None or newest.state is not OperationState.COMPLETED or newest.revision.digest != inputs.digest:
            return False
        # In a thread: they may have megabytes.
        return await asyncio.to_thread(
            lambda: bool(revealed(inputs.parameters, ring) == revealed(internals.parameters, ring))
        )

    async def _offered(self, record: InstanceRecord) -> list[Filter]:
        of_it = by(vnfInstanceId=record.vnf.id)
        ready = by(operationState=OperationState.COMPLETED.value)
        found = await self._find([of_it, ready], 1, exclude=_LARGE)
        oldest = record.internals.revision - self.most + 1
        numbers: list[Filter] = [Compare(NUMBER, Op.GTE, [oldest])]
        if found:
            numbers.append(Compare(NUMBER, Op.EQ, [_kept(found[0], record).revision.number]))
        return [of_it, AnyOf(numbers)]

    async def _find(self, wanted: Sequence[Filter], limit: int, exclude: Sequence[str] = ()) -> Sequence[Stored]:
        # `Exists` for a sparse index, which holds no other operations.
        query = Query(
            AllOf([*wanted, Exists(NUMBER)]), sort=Sort(NUMBER, descending=True), limit=limit, exclude=exclude
        )
        return await self.store.find(occurrences.COLLECTION, query)


def _kept(stored: Stored, record: InstanceRecord) -> Kept:
    """Return a revision, whose operation has ended once it has released the instance: the occurrence is written after it."""
    body, ended = stored.body, record.internals.ended_revision
    revision, state = Revision.model_validate(body["internal"]["revision"]), OperationState(body["operationState"])
    has_released = ended is not None and ended.number == revision.number
    return Kept(revision, stored.id, body["startTime"], ended.state if ended is not None and has_released else state)
