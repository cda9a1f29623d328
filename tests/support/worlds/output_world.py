"""Outputs of instances that are kept in memory, and what was published of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from kubevnfm_events.outputs import ObjectOutputsChanged
from kubevnfm_infra_k8s.domain.inventory.record import Identity
from kubevnfm_infra_k8s.domain.outputs.record import InstanceOutputs
from kubevnfm_store.port import RevisionConflict


@dataclass
class KeptOutputs:
    """`domain.outputs.ports.OutputRecords`."""

    records: dict[str, InstanceOutputs] = field(default_factory=dict)
    unseen: dict[str, InstanceOutputs] = field(default_factory=dict)
    events: list[ObjectOutputsChanged] = field(default_factory=list)

    async def get(self, vnf_instance_id: str) -> InstanceOutputs | None:
        return self.records.get(vnf_instance_id)

    async def want(self, record: InstanceOutputs) -> None:
        self.unseen[record.vnf_instance_id] = self._written(record)

    async def read(self, record: InstanceOutputs, event: ObjectOutputsChanged) -> None:
        self._written(record)
        self.events.append(event)

    async def remove(self, vnf_instance_id: str) -> None:
        self.records.pop(vnf_instance_id, None)

    async def all(self) -> Sequence[InstanceOutputs]:
        return list(self.records.values())

    async def news(self) -> Sequence[InstanceOutputs]:
        return list(self.unseen.values())

    async def await_news(self, *, look_s: float, longest_s: float) -> None:
        await asyncio.sleep(min(look_s, longest_s))

    async def clear_news(self, record: InstanceOutputs) -> None:
        self.unseen.pop(record.vnf_instance_id, None)

    def _written(self, record: InstanceOutputs) -> InstanceOutputs:
        before = self.records.get(record.vnf_instance_id)
        if record.revision != (before.revision if before is not None else 0):
            raise RevisionConflict("another revision")
        self.records[record.vnf_instance_id] = replace(record, revision=record.revision + 1)
        return self.records[record.vnf_instance_id]


class NoOutputs:
    """`domain.inventory.ports.Noticing` where no instance has outputs."""

    def notice(self, vim_id: str, identity: Identity) -> None: ...

    def notice_list(self, vim_id: str, group: str, kind: str) -> None: ...

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield
