"""The interfaces of the work on documents with a wanted state: the documents, turns among processes, and the regions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_kit.errors import OutsideUnavailable

D = TypeVar("D", bound="Document")
D_contra = TypeVar("D_contra", bound="Document", contravariant=True)


class TurnTaken(OutsideUnavailable, code="turn-taken", title="Another process works on it"):
    """Another process has the turn, and did not give it back in time."""


@dataclass(frozen=True)
class Region:
    """The facts of a cloud region that a document needs."""

    vim_id: str
    links_namespace: str = "default"
    sriov_namespace: str = "sriov-network-operator"
    protected_namespaces: Collection[str] = ()
    """Those in which nothing is created."""


class Document(Protocol):
    """A document with a wanted state."""

    @property
    def id(self) -> str: ...

    @property
    def vim_id(self) -> str: ...

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be done."""
        ...

    @property
    def is_decided(self) -> bool:
        """Whether a caller need not wait."""
        ...

    @property
    def is_removed(self) -> bool:
        """Whether the document is being removed."""
        ...


class Documents(Protocol[D]):
    """The stored documents."""

    async def get(self, id: str, /) -> D | None: ...

    async def unsettled(self) -> Sequence[tuple[str, str]]:
        """Return those on which there is work: their ids, each with that of its VIM."""
        ...

    async def has_unsettled(self) -> bool:
        """Return whether there are any such."""
        ...

    async def settled(self) -> Sequence[tuple[str, str]]:
        """Return the others."""
        ...

    async def lose_region(self, document: D, reason: str, /, *, now: str) -> None:
        """Store that the region is not registered any more, with the event of that: failed, with nothing to be done.

        Raises RevisionConflict.
        """
        ...

    async def delete(self, document: D, /) -> None:
        """Delete the document if it is at its revision. Raises RevisionConflict."""
        ...


class Passes(Protocol[D_contra]):
    """The work on a document in its region. Each method raises NotYet, RevisionConflict, and what the region raises."""

    async def bring(self, document: D_contra, /) -> None:
        """Bring the objects to what the document says, and store how it stands."""
        ...

    async def look(self, document: D_contra, /) -> None:
        """Show whether another party has changed the objects; nothing is repaired."""
        ...

    async def remove(self, document: D_contra, /) -> None:
        """Delete the objects, then the document."""
        ...

    async def note(self, id: str, reason: str, /) -> None:
        """Show why there is no progress."""
        ...


class Turns(Protocol):
    """Leases: one process at a time works on a thing. The turn of a process that has died ends by itself."""

    def held(self, name: str, *, within_s: float) -> AbstractAsyncContextManager[None]:
        """Have the turn while the block lasts. Raises TurnTaken."""
        ...


class Regions(Protocol):
    """The cloud regions."""

    async def region(self, cloud_region_id: str) -> Region:
        """Return what documents need to know of a region. Raises NotFound, OutsideUnavailable."""
        ...

    async def suspensions(self) -> Mapping[str, Suspension]:
        """Return those of all regions, by the id of the VIM: nothing is changed there. Raises OutsideUnavailable."""
        ...
