"""Persistent volumes that outlive VNFs: infra-k8s owns them (multicloud.md chapter 13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Protocol

import aiohttp
from kubevnfm_events.volumes import VolumePhase
from kubevnfm_kit.error_text import ErrorText
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.kubernetes_names import LABEL
from pydantic import ConfigDict, Field

from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.types import (
    Labels,
    MultiCloudRequest,
    MultiCloudType,
    NamespaceName,
    Page,
    revision_query,
)

AccessMode = Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany", "ReadOnlyMany"]
VolumeMode = Literal["Filesystem", "Block"]
Reclaim = Literal["Retain", "Delete"]
ObjectName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        pattern=rf"^{LABEL}(\.{LABEL})*$",
    ),
]
"""An RFC 1123 subdomain: the name of a claim or a class."""
VolumeLabels = Annotated[Labels, Field(max_length=64)]
Size = Annotated[str, Field(min_length=1, max_length=32)]
"""A quantity of Kubernetes: ``10Gi``."""
Text = Annotated[str, Field(min_length=1, max_length=1024)]
MOST_VOLUMES: Final = 64
"""The most volumes that one VNF uses."""


class NfsSource(MultiCloudRequest):
    """A directory of an NFS server."""

    server: Annotated[str, Field(min_length=1, max_length=253)]
    path: Annotated[str, Field(max_length=1024, pattern=r"^/")]
    read_only: bool = Field(default=False, alias="readOnly")


class SecretReference(MultiCloudRequest):
    """A Secret of the region; its content is not read."""

    name: ObjectName
    namespace: NamespaceName


class CsiSource(MultiCloudRequest):
    """A volume of a CSI driver; the members are those of the object."""

    driver: ObjectName
    volume_handle: Text = Field(alias="volumeHandle")
    fs_type: Annotated[str, Field(min_length=1, max_length=32)] | None = Field(default=None, alias="fsType")
    read_only: bool = Field(default=False, alias="readOnly")
    volume_attributes: Annotated[dict[Text, Annotated[str, Field(max_length=1024)]], Field(max_length=64)] | None = (
        Field(default=None, alias="volumeAttributes")
    )
    controller_publish_secret_ref: SecretReference | None = Field(default=None, alias="controllerPublishSecretRef")
    node_stage_secret_ref: SecretReference | None = Field(default=None, alias="nodeStageSecretRef")
    node_publish_secret_ref: SecretReference | None = Field(default=None, alias="nodePublishSecretRef")


class LocalSource(MultiCloudRequest):
    """A disk or directory of a node."""

    path: Annotated[str, Field(max_length=1024, pattern=r"^/")]
    fs_type: Annotated[str, Field(min_length=1, max_length=32)] | None = Field(default=None, alias="fsType")
    nodes: Annotated[tuple[ObjectName, ...], Field(min_length=1, max_length=100)]
    """The names of the nodes that have it, for the ``nodeAffinity`` without which Kubernetes refuses such a volume."""


class VolumeSource(MultiCloudRequest):
    """Where the data of a volume are: exactly one of its members."""

    nfs: NfsSource | None = None
    csi: CsiSource | None = None
    local: LocalSource | None = None


class VolumeRequest(MultiCloudRequest):
    """A volume to create."""

    cloud_region_id: Annotated[str, Field(min_length=1, max_length=255)]
    name: NamespaceName
    namespace: NamespaceName | None = None
    """The namespace of the claim that provisions the volume; unless given, the region's namespace for links."""
    size: Size
    access_modes: Annotated[tuple[AccessMode, ...], Field(max_length=4)]
    volume_mode: VolumeMode = "Filesystem"
    storage_class: ObjectName | None = None
    source: VolumeSource | None = None
    reclaim: Reclaim = "Retain"
    """Says whether a deletion keeps the data."""
    labels: VolumeLabels = Field(default_factory=dict)


class VolumePatch(MultiCloudRequest):
    """The changes of a volume."""

    size: Size | None = None
    """It only grows."""
    labels: VolumeLabels | None = None
    """They replace those that the volume has."""


class VolumeMountRequest(MultiCloudRequest):
    """A volume that a VNF uses, and the claim by which its workloads mount it."""

    persistent_volume_id: str = Field(min_length=1, max_length=255)
    claim_name: ObjectName


class VolumeUse(MultiCloudRequest):
    """Where a VNF needs a volume."""

    namespace: NamespaceName
    claim_name: ObjectName


class Claim(MultiCloudType):
    """The claim of a VNF."""

    namespace: str
    name: str


class PersistentVolume(MultiCloudType):
    """A volume."""

    model_config = ConfigDict(extra="ignore")

    id: str
    cloud_region_id: str
    name: str
    pv: str | None = None
    """The name of the PersistentVolume; absent until there is one."""
    claim: Claim | None = None
    """The claim of the first VNF that uses the volume."""
    phase: VolumePhase
    phase_detail: ErrorText = ""
    in_use_by: tuple[str, ...] = ()
    size: str
    access_modes: tuple[AccessMode, ...]
    volume_mode: VolumeMode
    storage_class: str | None = None
    source: JsonObject | None = None
    reclaim: Reclaim
    labels: dict[str, str] = Field(default_factory=dict)
    suspended: Suspension | None = Field(default=None, exclude_if=lambda value: value is None)
    """That of its region."""
    is_decided: bool = False
    """Whether waiting would not change the phase; not shown."""
    vim_id: str = ""
    """Its region; not shown."""
    refusal: ErrorText = ""
    """Why no other VNF can use it now; not shown."""
    created_at: str
    updated_at: str
    revision: int = 0
    """The document's; for conditional writes, and not shown."""


class VolumeClaim(MultiCloudType):
    """How far the use of a volume has come."""

    reference: str
    claim: Claim
    pv: str | None = None
    is_bound: bool
    waits_for_consumer: bool = False
    """Whether the claim will be bound when a pod uses it, and not before."""
    detail: ErrorText = ""


class RemovedVolume(MultiCloudType):
    """A volume that is removed, and whether its data are kept."""

    id: str
    is_gone: bool
    """Whether no object of the volume is left."""
    data: Literal["kept", "deleted"]
    where: str = ""
    """Where kept data are."""


@dataclass(frozen=True)
class CreatedVolume:
    """The answer to a creation."""

    volume: PersistentVolume
    is_new: bool


class PersistentVolumes(Protocol):
    """Served by infra-k8s: ``/internal/v1/persistent-volumes``. Every method may raise OutsideUnavailable.

    ``wait_s``: how long a call waits for the work in the region; it returns what there is then.
    """

    async def create(self, wanted: VolumeRequest, *, wait_s: float) -> CreatedVolume:
        """Create a volume, or return the one of this name and spec. Raises Unprocessable, Conflict."""
        ...

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[PersistentVolume]:
        """Return volumes by id; ``filters``: values by attribute; ``after``: the id behind which the page begins."""
        ...

    async def get(self, volume_id: str) -> PersistentVolume:
        """Return a volume as the region shows it. Raises NotFound."""
        ...

    async def change(
        self, volume_id: str, patch: VolumePatch, *, if_revision: int | None, wait_s: float
    ) -> PersistentVolume:
        """Change a volume; ``if_revision``: None: whatever it is. Raises NotFound, Unprocessable, Conflict (another revision)."""
        ...

    async def delete(self, volume_id: str, *, if_revision: int | None, wait_s: float) -> RemovedVolume:
        """Delete a volume. Raises NotFound, InUse, Conflict (another revision)."""
        ...

    async def use(self, volume_id: str, reference: str, wanted: VolumeUse, *, wait_s: float) -> VolumeClaim:
        """Have a claim for the volume; safe to repeat. Raises NotFound, InUse, Conflict."""
        ...

    async def leave(self, volume_id: str, reference: str, *, wait_s: float) -> bool:
        """Remove the claim; return whether it is gone. Safe to repeat, also for a volume that does not exist."""
        ...


class HttpPersistentVolumes:
    """`PersistentVolumes` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("infra-k8s", base_url, token, session)

    async def create(self, wanted: VolumeRequest, *, wait_s: float) -> CreatedVolume:
        body, query = _document(wanted), {"wait_s": str(wait_s)}
        answer = await self._api.call("POST", _PATH, body=body, query=query, wait_s=wait_s)
        return CreatedVolume(PersistentVolume.model_validate(answer["volume"]), is_new=bool(answer["is_new"]))

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[PersistentVolume]:
        query = {**filters, "limit": str(limit), **({} if after is None else {"after": after})}
        answer = await self._api.call("GET", _PATH, query=query)
        return Page([PersistentVolume.model_validate(one) for one in answer["volumes"]], answer["next_after"])

    async def get(self, volume_id: str) -> PersistentVolume:
        return PersistentVolume.model_validate(await self._api.call("GET", _PATH, volume_id))

    async def change(
        self, volume_id: str, patch: VolumePatch, *, if_revision: int | None, wait_s: float
    ) -> PersistentVolume:
        query = _conditional(if_revision, wait_s)
        body = patch.model_dump(mode="json", by_alias=True, exclude_unset=True)
        answer = await self._api.call("PATCH", _PATH, volume_id, body=body, query=query, wait_s=wait_s)
        return PersistentVolume.model_validate(answer)

    async def delete(self, volume_id: str, *, if_revision: int | None, wait_s: float) -> RemovedVolume:
        query = _conditional(if_revision, wait_s)
        return RemovedVolume.model_validate(
            await self._api.call("DELETE", _PATH, volume_id, query=query, wait_s=wait_s)
        )

    async def use(self, volume_id: str, reference: str, wanted: VolumeUse, *, wait_s: float) -> VolumeClaim:
        query = {"reference": reference, "wait_s": str(wait_s)}
        answer = await self._api.call(
            "PUT", _PATH, volume_id, "uses", body=_document(wanted), query=query, wait_s=wait_s
        )
        return VolumeClaim.model_validate(answer)

    async def leave(self, volume_id: str, reference: str, *, wait_s: float) -> bool:
        query = {"reference": reference, "wait_s": str(wait_s)}
        answer = await self._api.call("DELETE", _PATH, volume_id, "uses", query=query, wait_s=wait_s)
        return bool(answer["is_gone"])


_PATH: Final = "persistent-volumes"


def _document(wanted: MultiCloudRequest) -> JsonObject:
    return wanted.model_dump(mode="json", by_alias=True, exclude_none=True)


def _conditional(if_revision: int | None, wait_s: float) -> dict[str, str]:
    """Return the query of a write."""
    return {"wait_s": str(wait_s), **revision_query(if_revision)}
