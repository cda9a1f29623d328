"""An individual VNF snapshot as lcm-api stores it: the public data type, and internal facts that no API shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from kubevnfm_events.snapshots import MachineSnapshot
from kubevnfm_events.stacks import StackResources
from kubevnfm_secrets import KeyRing, sealing
from kubevnfm_sol.base import SolType
from kubevnfm_sol.snapshots import VnfSnapshotInfo
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Compare, Op, Query
from pydantic import BaseModel, ConfigDict, Field

COLLECTION = "vnf_snapshots"
VIM = "internal/vimId"
"""Where a document has the VIM that holds its images and volume snapshots."""

_MOST_OF_ONE_VNF: Final = 1000


class SnapshotInternals(SolType):
    """Never shown; stored under ``internal`` in the document."""

    used_by: str | None = None
    """The operation that has claimed it last. It is in use while that operation has not ended."""
    used_at: str | None = None
    created_by: str | None = None
    """The CREATE_SNAPSHOT whose snapshot it holds; its steps are undone when the resource is deleted."""
    vim_id: str | None = None
    vim_key: str = ""
    stack: StackResources | None = None
    """The machines when the snapshot was taken."""
    machines: tuple[MachineSnapshot, ...] = ()


class SnapshotRecord(BaseModel):
    """The document of one individual VNF snapshot."""

    model_config = ConfigDict(frozen=True)

    info: VnfSnapshotInfo
    created_at: str
    updated_at: str
    internals: SnapshotInternals = Field(default_factory=SnapshotInternals)

    def document(self, ring: KeyRing) -> dict[str, Any]:
        """Return the body for the store: VnfSnapshotInfo's attributes at the top, so that filters find them."""
        body = self.info.document(ring)
        internals = self.internals.model_dump(
            mode="json", by_alias=True, exclude_defaults=True, context=sealing(ring, ())
        )
        return {**body, "createdAt": self.created_at, "updatedAt": self.updated_at, "internal": internals}

    @classmethod
    def from_document(cls, body: Mapping[str, Any]) -> Self:
        """Read what ``document`` wrote."""
        return cls(
            info=VnfSnapshotInfo.model_validate(body),
            created_at=body["createdAt"],
            updated_at=body["updatedAt"],
            internals=SnapshotInternals.model_validate(body.get("internal", {})),
        )

    @property
    def is_complete(self) -> bool:
        """Whether it holds a snapshot whose creation has ended."""
        return self.info.vnf_snapshot is not None and self.info.vnf_snapshot.creation_finished_at is not None

    @property
    def volume_ids(self) -> frozenset[str]:
        """The volumes that it has snapshots of, or may have: what an operation made that was given up is not recorded."""
        recorded = {one.volume_id for machine in self.internals.machines for one in machine.volumes}
        stack = self.internals.stack
        possible = stack.volumes if stack is not None and not self.is_complete else ()
        return frozenset(recorded | {one.resource_id for one in possible})

    def with_info(self, **changes: Any) -> Self:
        """Return the record with attributes of the public part changed."""
        return self.model_copy(update={"info": self.info.model_copy(update=changes)})

    def with_internals(self, **changes: Any) -> Self:
        """Return the record with internals changed."""
        return self.model_copy(update={"internals": self.internals.model_copy(update=changes)})


async def snapshots_of(store: DocumentStore, instance_id: str) -> list[SnapshotRecord]:
    """Return the individual VNF snapshots that hold a snapshot of a VNF."""
    of_vnf = Compare("vnfSnapshot/vnfInstanceId", Op.EQ, [instance_id])
    found = await store.find(COLLECTION, Query(of_vnf, limit=_MOST_OF_ONE_VNF))
    return [SnapshotRecord.from_document(one.body) for one in found]
