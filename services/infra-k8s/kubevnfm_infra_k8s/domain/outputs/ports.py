"""The interface of the stored outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kubevnfm_events.outputs import ObjectOutputsChanged

from kubevnfm_infra_k8s.domain.outputs.record import InstanceOutputs


class OutputRecords(Protocol):
    """The stored outputs of instances. Each write names the revision that it has read, and raises RevisionConflict."""

    async def get(self, vnf_instance_id: str) -> InstanceOutputs | None: ...

    async def want(self, record: InstanceOutputs) -> None:
        """Store other outputs of an instance; they are news for the watches."""
        ...

    async def read(self, record: InstanceOutputs, event: ObjectOutputsChanged) -> None:
        """Store that other values were read, and the event about it."""
        ...

    async def remove(self, vnf_instance_id: str) -> None: ...

    async def all(self) -> Sequence[InstanceOutputs]: ...

    async def news(self) -> Sequence[InstanceOutputs]:
        """Return the outputs that were wanted and whose news was not cleared since."""
        ...

    async def await_news(self, *, look_s: float, longest_s: float) -> None:
        """Return when there may be news, at the latest after ``longest_s``; after ``look_s`` where writes of others are not seen."""
        ...

    async def clear_news(self, record: InstanceOutputs) -> None:
        """Have the outputs be no news any more, unless they have changed since they were read."""
        ...
