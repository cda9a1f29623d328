"""The outputs of instances: which are wanted, and readings of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from kubevnfm_events.outputs import ObjectOutputsChanged, OutputsRead
from kubevnfm_kit.clock import Clock
from kubevnfm_store.port import RevisionConflict

from kubevnfm_infra_k8s.domain.outputs.ports import OutputRecords
from kubevnfm_infra_k8s.domain.outputs.record import InstanceOutputs, Output
from kubevnfm_infra_k8s.domain.outputs.values import read_values
from kubevnfm_infra_k8s.domain.ports import Cluster

_LOST_WRITES: Final = 20


@dataclass(frozen=True)
class Reading:
    """A reading, and the outputs whose values are not shown."""

    read: OutputsRead
    refused: tuple[str, ...]


@dataclass(frozen=True)
class Outputs:
    """The outputs of all instances."""

    records: OutputRecords
    clock: Clock

    async def want(self, vnf_instance_id: str, vim_id: str, outputs: tuple[Output, ...]) -> None:
        """Have these outputs read from now on. Raises RevisionConflict."""
        known = await self.records.get(vnf_instance_id)
        if not outputs:
            if known is not None:
                await self.records.remove(vnf_instance_id)
            return
        if known is not None and (known.vim_id, known.outputs) == (vim_id, outputs):
            return
        before = known or InstanceOutputs(vnf_instance_id, vim_id, outputs)
        await self.records.want(replace(before, vim_id=vim_id, outputs=outputs, digest=""))

    async def refresh(self, cluster: Cluster, vnf_instance_id: str) -> Reading | None:
        """Read the outputs of an instance, and publish other values; None if it has none.

        If readings happen at the same time, the one with the latest values is stored last.
        """
        for _ in range(_LOST_WRITES):
            record = await self.records.get(vnf_instance_id)
            if record is None:
                return None
            values = await read_values(cluster, record.outputs)
            if values.digest == record.digest:
                return Reading(OutputsRead(number=record.number, values=values.by_name), values.refused)
            # The time, so that the numbers of an instance grow also when its outputs are wanted again after they were removed.
            number = max(record.number + 1, int(self.clock.now().timestamp() * 1_000_000))
            read = OutputsRead(number=number, values=values.by_name)
            event = ObjectOutputsChanged(vnf_instance_id=vnf_instance_id, read=read)
            try:
                await self.records.read(replace(record, digest=values.digest, number=number), event)
            except RevisionConflict:
                continue
            return Reading(read, values.refused)
        raise RevisionConflict(f"outputs of VNF instance {vnf_instance_id}: written by others all the time")

    async def forget(self, vnf_instance_id: str) -> None:
        """Forget the outputs of an instance whose objects are gone."""
        await self.records.remove(vnf_instance_id)
