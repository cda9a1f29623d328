"""The interfaces that the export needs: A&AI, and what is to be exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from kubevnfm_clients.multicloud.region_views import RegionFeatures
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_infra_k8s.domain.exporting.nodes import RegionKey
from kubevnfm_infra_k8s.domain.inventory.record import ObjectRecord
from kubevnfm_infra_k8s.domain.links.record import Link


class AaiAway(VnfmError, code="aai-away", status=503):
    """A&AI does not answer, or accepts nothing of this manager now: its credentials, or its load."""

    retryable = True


class AaiRefused(VnfmError, code="aai-refused", status=502):
    """A&AI has refused an operation for what it says."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"A&AI answered {status}: {reason}")
        self.answered = status


class AaiForbidden(AaiRefused, code="aai-forbidden"):
    """A&AI does not let this manager read or write a node; it may be the same with all nodes (`Graph.check_allowed`)."""


@dataclass(frozen=True)
class Operation:
    """One change of the graph."""

    action: Literal["put", "delete"]
    path: str
    body: JsonMapping

    @property
    def is_creation(self) -> bool:
        """Whether it creates its node: a change names the version that it has read."""
        return self.action == "put" and "resource-version" not in self.body


class Graph(Protocol):
    """A&AI. Each method may raise AaiAway and AaiRefused."""

    @property
    def version(self) -> str:
        """The version of its schema, ``v14``."""
        ...

    async def get(self, path: str) -> JsonMapping | None:
        """Return a node with its children and edges; None if there is none."""
        ...

    async def head(self, path: str) -> JsonMapping | None:
        """Return a node without its children and edges, of which a region has those of all VNFs; None if there is none."""
        ...

    async def transact(self, operations: Sequence[Operation]) -> None:
        """Make all changes, or none."""
        ...

    async def check_allowed(self) -> None:
        """Raise AaiAway if A&AI lets this manager change nothing."""
        ...


@dataclass(frozen=True)
class DueObject:
    """An object whose record A&AI does not have as it is."""

    id: str
    revision: int
    record: ObjectRecord | None
    """None: the object is gone."""
    vim_id: str
    namespace: str
    vnf_id: str
    left_vnf_id: str
    """The VNF that had it before; "" if that is the same."""
    is_placed: bool
    """Whether it is a node of its own: a pod or virtual machine."""
    is_known: bool
    """Whether A&AI is known to have had it."""
    tries: int
    unsettled_s: float
    """How long a creation that was asked for before may still arrive; 0: none is under way."""


Subject = Literal["link", "features"]


@dataclass(frozen=True)
class DueSubject:
    """A link, or the features of a region, of which A&AI does not have the last state."""

    id: str
    revision: int
    subject: Subject
    subject_id: str
    """The id of the link or of the VIM."""
    expected: int
    """The revision that a link has after the write that was announced; 0: it is gone then."""
    is_young: bool
    """Whether that write may still be under way."""
    sent: Mapping[str, str]
    """Digests of the nodes that A&AI got, by id."""
    tries: int
    unsettled_s: float
    """As of an object."""


class ExportRecords(Protocol):
    """The stored marks of what is to be exported, each found by an index."""

    async def begin(self) -> None:
        """Have everything exported if this A&AI has never got anything."""
        ...

    async def objects(self, *, limit: int) -> Sequence[DueObject]:
        """Return objects whose time has come, those that wait longest first."""
        ...

    async def intend(self, due: DueObject) -> DueObject | None:
        """Store that its creation is asked for now; return it as it is stored, None if it has changed since it was read."""
        ...

    async def settle(self, due: DueObject) -> None:
        """Store that A&AI has the object as it was read; nothing if it has changed since.

        One that is gone is removed again while an earlier creation may still arrive.
        """
        ...

    async def put_off(self, due: DueObject, reason: str, *, again_s: float) -> None:
        """Store that A&AI has refused it, and when it is tried again; nothing if it has changed since."""
        ...

    async def has_objects(self, vnf_id: str, *, gone: int) -> bool:
        """Return whether a VNF has objects, or more than so many that are gone and not yet removed from A&AI."""
        ...

    async def subjects(self, *, limit: int) -> Sequence[DueSubject]:
        """Return links and features whose time has come."""
        ...

    async def settle_subject(self, due: DueSubject, sent: Mapping[str, str]) -> None:
        """Store what A&AI has of a subject; nothing of it: it is forgotten.

        It is due again while an earlier creation may still arrive.
        """
        ...

    async def keep_sent(self, due: DueSubject, sent: Mapping[str, str]) -> DueSubject:
        """Store what A&AI may have, and that it is asked for now, before it is sent; return the subject as it is stored.

        Raises RevisionConflict.
        """
        ...

    async def put_off_subject(self, due: DueSubject, reason: str, *, again_s: float) -> None:
        """Store when it is tried again, and the reason if A&AI has refused it."""
        ...

    async def link(self, link_id: str) -> Link | None:
        """Return a virtual link."""
        ...

    async def region(self, vim_id: str) -> RegionKey | None:
        """Return the region that was stored for a VIM."""
        ...

    async def store_region(self, vim_id: str, key: RegionKey) -> None:
        """Store the region of a VIM, before anything of it is exported."""
        ...

    async def mark_page(self) -> bool:
        """Mark the next part of all objects, if a resynchronization is under way; return whether there was one."""
        ...

    async def said(self, *, is_reachable: bool, reason: str) -> None:
        """Store whether A&AI answers."""
        ...


class RegionsOfVims(Protocol):
    """The cloud regions of vim-registry."""

    async def key(self, vim_id: str) -> RegionKey | None:
        """Return the region that a VIM is; None if it is none."""
        ...

    async def features(self, key: RegionKey) -> RegionFeatures | None:
        """Read what the nodes have; None if the region is not registered any more. Raises VnfmError."""
        ...
