"""Keeps the order between VNF instances that depend on one another (sequences.md D0, SEQ-040, SEQ-041).

A request is checked before it is accepted. A second request may be accepted at the same moment, so both operations are
checked once more when they are granted, before anything is sent: each has written to its own instance by then (the claim
with `isWithdrawing`, the used id) and reads that of the other, so at least one of them sees the other and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
from kubevnfm_events import Envelope
from kubevnfm_events.lcm import InstanceOrphaned, MarkOrphans, OrphansMarked
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict
from kubevnfm_secrets import KeyRing
from kubevnfm_sol.lcm import OperationState, OperationType
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import AllOf, Compare, Exists, Op, Query, Stored
from kubevnfm_worker.outbox import Outbox
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core import snapshot as snapshots
from kubevnfm_lcm_api.lifecycle.core.dependencies import (
    IS_WITHDRAWING,
    PATHS,
    WORDS,
    Orphaned,
    Provided,
    ProvidedInUse,
    ProviderWithdraws,
    is_marked,
    orphaned,
)
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION, InstanceRecord

log = structlog.get_logger()

_NAMED: Final = 20
"""The most users that an error names. More are not read either, so that a check costs the same however many there are."""
_PAGE: Final = 100
_IS_RUNNING_CLEAN_UP: Final = AllOf(
    [
        Compare("internal/isInternal", Op.EQ, [True]),
        Compare("operationState", Op.IN, [OperationState.ROLLING_BACK, OperationState.FAILED_TEMP]),
    ]
)
_BODY: Final = ("instantiatedVnfInfo", "vimConnectionInfo", "metadata", "internal")
"""Attributes that are not read where only ids are wanted."""


class Dependencies:
    """Answers which instances use what another one provides."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def refusal(self, draft: Draft) -> Conflict | None:
        """Return why the operation must not go on; None if it may.

        It must not if it deletes volumes that have snapshots, if it takes away what others use, unless it is forced, or if it begins to use what another operation
        takes away.
        """
        held = await self._held(draft)
        if held is not None:
            return held
        withdrawn, begun = draft.withdrawn, draft.begins_use
        if withdrawn is not None and not withdrawn.is_forced:
            users = await self.users(withdrawn.provided, other_than=draft.vnf_instance_id, limit=_NAMED + 1)
            if users:
                return ProvidedInUse(withdrawn, tuple(users[:_NAMED]), are_more=len(users) > _NAMED)
        for provided in begun:
            withdrawing = AllOf(
                [
                    Compare(PATHS[provided.kind].provider, Op.IN, provided.ids),
                    Exists(IS_WITHDRAWING),
                    Compare(IS_WITHDRAWING, Op.EQ, [True]),
                ]
            )
            for found in await self._store.find(COLLECTION, Query(withdrawing, limit=1, exclude=_BODY)):
                return ProviderWithdraws(provided.kind, found.id)
        return None

    async def _held(self, draft: Draft) -> Conflict | None:
        """Return the refusal if snapshots hold volumes that the operation deletes: Cinder deletes no volume that has snapshots."""
        volumes = frozenset(draft.deleted_volumes)
        if not volumes:
            return None
        known = await snapshots.snapshots_of(self._store, draft.vnf_instance_id)
        held = [one.info.id for one in known if volumes & one.volume_ids]
        if held:
            return Conflict(
                f"VNF snapshot {', '.join(held[:_NAMED])} has snapshots of volumes that the operation deletes, and Cinder deletes "
                "no volume that has snapshots: delete the VNF snapshot first"
            )
        of_vnf = Compare("vnfInstanceId", Op.EQ, [draft.vnf_instance_id])
        of_snapshots = Compare("operation", Op.EQ, [OperationType.CREATE_SNAPSHOT])
        going = Query(AllOf([_IS_RUNNING_CLEAN_UP, of_vnf, of_snapshots]), limit=1, exclude=("internal",))
        for found in await self._store.find(occurrences.COLLECTION, going):
            why = (found.body.get("error") or {}).get("detail") or "try again"
            return Conflict(f"a deleted VNF snapshot still has snapshots of volumes of the VNF: {why}")
        return None

    async def users(self, provided: Provided, *, other_than: str | None = None, limit: int | None = None) -> list[str]:
        """Return the ids of the instances, at most ``limit``, that have, are getting or may still have a use of it.

        A deleted instance counts too while its remains on a VIM are being removed: that needs the VIM's access data.
        """
        uses = Compare(PATHS[provided.kind].users, Op.IN, provided.ids)
        # One more, as ``other_than`` may be among them.
        limit_read = None if limit is None else limit + 1
        users = [one.id for one in await self._store.find(COLLECTION, Query(uses, limit=limit_read, exclude=_BODY))]
        if provided.kind == "cluster":
            cleans_up = AllOf([_IS_RUNNING_CLEAN_UP, Compare("internal/draft/vim/vim_id", Op.IN, provided.ids)])
            clean_ups = Query(cleans_up, limit=limit_read, exclude=("internal",))
            found = await self._store.find(occurrences.COLLECTION, clean_ups)
            users += [str(one.body["vnfInstanceId"]) for one in found]
            # Snapshots outlive their VNFs, and are deleted with the VIM's access data.
            on_vim = Query(Compare(snapshots.VIM, Op.IN, provided.ids), limit=limit_read, exclude=("internal",))
            held = await self._store.find(snapshots.COLLECTION, on_vim)
            users += [str(one.body["vnfSnapshot"]["vnfInstanceId"]) for one in held if "vnfSnapshot" in one.body]
        return [one for one in dict.fromkeys(users) if one != other_than][:limit]


class OrphanMarks:
    """Handles MarkOrphans."""

    def __init__(self, *, store: DocumentStore, outbox: Outbox, ring: KeyRing, clock: Clock) -> None:
        self._store, self._outbox, self._ring, self._clock = store, outbox, ring, clock

    async def mark_orphans(self, command: MarkOrphans, _: StepContext) -> Outcome:
        """Mark each user once, whatever runs on it; instances that begin to use it now are refused meanwhile."""
        count, has_lost = 0, False
        after: tuple[None, str] | None = None
        ids = (command.resource_id, *command.other_ids)
        uses = Compare(PATHS[command.provided].users, Op.IN, ids)
        while True:
            page: Sequence[Stored] = await self._store.find(COLLECTION, Query(uses, after=after, limit=_PAGE))
            for stored in page:
                record = InstanceRecord.from_document(stored.body)
                if stored.id == command.vnf_instance_id or is_marked(record, command.vnf_instance_id):
                    continue
                try:
                    await self._mark(stored, record, command)
                    count += 1
                except RevisionConflict:
                    has_lost = True
            if len(page) < _PAGE:
                break
            after = (None, page[-1].id)
        # Written by another process meanwhile: the next call reads it again, and passes over those that are marked.
        if has_lost:
            return NotYet(again_in_s=0.2)
        return Done(OrphansMarked(vnf_instance_id=command.vnf_instance_id, count=count))

    async def _mark(self, stored: Stored, record: InstanceRecord, command: MarkOrphans) -> None:
        now = rfc3339(self._clock.now())
        reason = (
            f"the {WORDS[command.provided]} of VNF instance {command.vnf_instance_id}, which this one uses, is deleted "
            f"({command.operation})"
        )
        mark = Orphaned(provided=command.provided, provider_id=command.vnf_instance_id, since=now, reason=reason)
        marked = orphaned(record, mark).model_copy(update={"updated_at": now})
        event = InstanceOrphaned(
            vnf_instance_id=stored.id,
            **record.facts.model_dump(),
            provider_id=mark.provider_id,
            provided=mark.provided,
            reason=reason,
        )
        await self._outbox.replace(
            COLLECTION,
            stored.id,
            marked.document(self._ring),
            if_revision=stored.revision,
            events=[Envelope(data=event, source=SOURCE, subject=stored.id)],
        )
        log.warning("instance_orphaned", vnf_instance_id=stored.id, reason=reason)
