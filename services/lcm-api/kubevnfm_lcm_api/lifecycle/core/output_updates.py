"""Takes over the outputs that watches have read (multicloud.md MC-138)."""

from __future__ import annotations

from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Verdict
from kubevnfm_events.outputs import ObjectOutputsChanged
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import DocumentStore, StoreUnavailable
from kubevnfm_store.races import repeat_lost_writes
from kubevnfm_worker.outbox import Outbox

from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION, InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.outputs import change_events, with_reading

log = structlog.get_logger()

_STORE_PAUSE_S: Final = 2.0


class OutputUpdates:
    """Writes readings to the instances."""

    def __init__(self, *, store: DocumentStore, outbox: Outbox, ring: KeyRing, clock: Clock) -> None:
        self._store, self._outbox, self._ring, self._clock = store, outbox, ring, clock

    async def record_reading(self, delivery: Delivery) -> Verdict:
        """Have the instance show the values."""
        changed = delivery.envelope.data
        assert isinstance(changed, ObjectOutputsChanged)
        try:
            await self._record(changed)
        except StoreUnavailable as error:
            log.debug("outputs_not_recorded", reason=str(error))
            return Again(_STORE_PAUSE_S)
        return Ack()

    @repeat_lost_writes
    async def _record(self, changed: ObjectOutputsChanged) -> None:
        stored = await self._store.get(COLLECTION, changed.vnf_instance_id)
        if stored is None:
            return
        before = InstanceRecord.from_document(stored.body)
        # An operation that has read them first may have further steps: it ends after this event.
        if not before.internals.outputs and before.internals.current_operation is None:
            return
        after = with_reading(before, changed.read)
        if after is before:
            return
        after = after.model_copy(update={"updated_at": rfc3339(self._clock.now())})
        await self._outbox.replace(
            COLLECTION,
            stored.id,
            after.document(self._ring),
            if_revision=stored.revision,
            events=change_events(before, after),
        )
