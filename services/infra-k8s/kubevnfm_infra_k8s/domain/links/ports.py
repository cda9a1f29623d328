"""The interfaces that the work on virtual links needs: stored links, turns among processes, and the regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kubevnfm_events import Event

from kubevnfm_infra_k8s.domain.links.record import Link


class LinkRecords(Protocol):
    """The stored links."""

    async def get(self, link_id: str, /) -> Link | None: ...

    async def named(self, vim_id: str, name: str) -> Link | None:
        """Return the link of this name in a region."""
        ...

    async def held_by(self, reference: str) -> Sequence[Link]:
        """Return the links that a user holds."""
        ...

    async def with_objects_in(self, namespace: str) -> Sequence[Link]:
        """Return the links of all regions that have an object in a namespace of this name."""
        ...

    async def in_region(self, vim_id: str) -> Sequence[Link]: ...

    async def page(self, filters: Mapping[str, str], *, limit: int, after: str | None) -> Sequence[Link]:
        """Return up to ``limit`` links in the order of their ids, those after one id."""
        ...

    async def unsettled(self) -> Sequence[tuple[str, str]]:
        """Return the links on which there is work: their ids, each with that of its VIM."""
        ...

    async def has_unsettled(self) -> bool:
        """Return whether there are any such."""
        ...

    async def settled(self) -> Sequence[tuple[str, str]]:
        """Return the others."""
        ...

    async def insert(self, link: Link) -> Link:
        """Store a new link. Raises AlreadyExists if the region has one of this name."""
        ...

    async def replace(self, link: Link, event: Event | None = None) -> Link:
        """Write the link if it is at its revision, with an event in the same write; return it with the new one.

        Raises RevisionConflict.
        """
        ...

    async def delete(self, link: Link, /) -> None:
        """Delete the link if it is at its revision. Raises RevisionConflict."""
        ...
