"""Answers credentials-receiver: which call-back of a workload cluster a VNF instance awaits now.

A step or a rotation is stored before its command is sent, so a call-back that it causes never comes before what is known here.
"""

from __future__ import annotations

from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_kit.clock import Clock
from kubevnfm_store.port import DocumentStore

from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES, Sequences
from kubevnfm_lcm_api.lifecycle.workloads.callbacks import awaited_by, cluster_uid_of
from kubevnfm_lcm_api.lifecycle.workloads.rotations import rotation_command


class AwaitedCallbacks:
    """Implements `kubevnfm_clients.ports.AwaitedCallbacks`."""

    def __init__(self, store: DocumentStore, clock: Clock, sequences: Sequences = SEQUENCES) -> None:
        self._store, self._clock, self._sequences = store, clock, sequences

    async def awaited(self, vnf_instance_id: str, operation_id: str) -> AwaitedCallback | None:
        # The named one first: the clean-up of a failed instantiation is not the instance's own operation, and the instance
        # may be deleted by then.
        if operation_id and (found := await self._of_operation(vnf_instance_id, operation_id)) is not None:
            return found
        stored = await self._store.get(instances.COLLECTION, vnf_instance_id)
        if stored is None:
            return None
        record = InstanceRecord.from_document(stored.body)
        running = record.internals.current_operation
        if running is not None and (found := await self._of_operation(vnf_instance_id, running)) is not None:
            return found
        return self._of_rotation(record)

    async def _of_operation(self, vnf_instance_id: str, occurrence_id: str) -> AwaitedCallback | None:
        """Return what a running step of the operation awaits."""
        stored = await self._store.get(occurrences.COLLECTION, occurrence_id)
        record = OccurrenceRecord.from_document(stored.body) if stored is not None else None
        if record is None or record.occ.vnf_instance_id != vnf_instance_id or not record.running:
            return None
        draft = self._sequences.draft(record.plan, record.draft)
        uid = cluster_uid_of(draft)
        for planned in record.running:
            command = self._sequences.running_command(planned, draft)
            if (found := awaited_by(command, record.occ.id, cluster_uid=uid)) is not None:
                return found
        return None

    def _of_rotation(self, record: InstanceRecord) -> AwaitedCallback | None:
        """Return what the rotation that runs between operations awaits."""
        rotation, workload = record.internals.rotation, record.internals.workload
        if rotation is None or workload is None or not rotation.seconds_left(self._clock.now()):
            return None
        command = rotation_command(record)
        if command is None:
            return None
        uid = workload.credentials.cluster_uid if workload.credentials is not None else None
        return awaited_by(command, rotation.id, cluster_uid=uid)
