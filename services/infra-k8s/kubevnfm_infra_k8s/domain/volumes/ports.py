"""The interface of the work on volumes: stored volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kubevnfm_events import Event

from kubevnfm_infra_k8s.domain.volumes.record import Volume


class VolumeRecords(Protocol):
    """The stored volumes."""

    async def get(self, volume_id: str, /) -> Volume | None: ...

    async def named(self, vim_id: str, name: str) -> Volume | None:
        """Return the volume of this name in a region."""
        ...

    async def used_by(self, reference: str) -> Sequence[Volume]:
        """Return the volumes that have a use by this reference."""
        ...

    async def page(self, filters: Mapping[str, str], *, limit: int, after: str | None) -> Sequence[Volume]:
        """Return up to ``limit`` volumes in the order of their ids, those behind ``after``. Raises InvalidInput."""
        ...

    async def unsettled(self) -> Sequence[tuple[str, str]]:
        """Return the volumes on which there is work: their ids, each with that of its VIM."""
        ...

    async def has_unsettled(self) -> bool:
        """Return whether there are any such."""
        ...

    async def settled(self) -> Sequence[tuple[str, str]]:
        """Return the others."""
        ...

    async def insert(self, volume: Volume) -> Volume:
        """Store a new volume. Raises AlreadyExists if the region has one of this name."""
        ...

    async def replace(self, volume: Volume, event: Event | None = None) -> Volume:
        """Write the volume if it is at its revision, with an event in the same write; return it with the new one.

        Raises RevisionConflict.
        """
        ...

    async def delete(self, volume: Volume, /) -> None:
        """Delete the volume if it is at its revision. Raises RevisionConflict."""
        ...
