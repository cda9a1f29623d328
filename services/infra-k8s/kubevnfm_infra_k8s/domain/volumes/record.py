"""A volume as it is stored: what is wanted, its users, and what of it exists in the region. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

from kubevnfm_clients.multicloud.volumes import (
    AccessMode,
    Claim,
    PersistentVolume,
    Reclaim,
    VolumeMode,
    VolumeRequest,
    VolumeUse,
)
from kubevnfm_events.volumes import VolumePhase
from kubevnfm_kit.error_text import ErrorText, bounded
from kubevnfm_kit.ids import derived_id
from kubevnfm_kit.json_types import JsonObject
from pydantic import Field

from kubevnfm_infra_k8s.domain.objects import CLAIMS, ObjectKey
from kubevnfm_infra_k8s.domain.quantities import bytes_of
from kubevnfm_infra_k8s.domain.reconciling.record import Part, WantedDocument

VOLUME_LABEL: Final = "kubevnfm.io/persistent-volume-id"
"""On the objects of a volume: its id."""
EXCLUSIVE: Final[frozenset[AccessMode]] = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})
"""The access modes with which one VNF at a time uses a volume."""
SHARED_SOURCES: Final = frozenset({"nfs", "csi"})
"""The sources that several PersistentVolumes may name (MC-103)."""
MOST_USES: Final = 1000
MOST_FORMER_LABELS: Final = 256
"""They grow with each change while the region is away."""


class Use(Part):
    """A VNF that uses a volume by a claim. It is stored before any object is sent."""

    reference: str
    namespace: str
    claim_name: str
    pv: str = ""
    """The name of its own PersistentVolume; "" if its claim has that of the volume."""
    claim_uid: str = ""
    """Empty until the API server has shown that the claim is bound."""
    waits_for_consumer: bool = False
    """Whether its claim provisions the volume, and the class does that for the first pod."""
    is_leaving: bool = False
    """Whether the claim is being removed."""
    detail: ErrorText = ""
    """Why the claim is not as wanted."""

    @property
    def claim(self) -> ObjectKey:
        """The key of the claim."""
        return ObjectKey(CLAIMS.api_version, CLAIMS.kind, self.namespace, self.claim_name)

    @property
    def wanted(self) -> VolumeUse:
        """Where the claim was asked for."""
        return VolumeUse(namespace=self.namespace, claim_name=self.claim_name)


class Volume(WantedDocument):
    """The document of a volume."""

    id: str
    cloud_region_id: str
    vim_id: str
    name: str
    place: str
    """The namespace of the claims that are the volume's own: the one that provisions it, and the one it is reserved for."""
    size: str
    access_modes: tuple[AccessMode, ...]
    volume_mode: VolumeMode
    storage_class: str | None = None
    source: JsonObject | None = None
    reclaim: Reclaim
    labels: dict[str, str] = Field(default_factory=dict)
    pv: str = ""
    """The name of the PersistentVolume: that of one with a source is known from the start."""
    pv_uid: str = ""
    """Empty until the API server has shown it."""
    pv_source: JsonObject | None = None
    """Where the data are, as the PersistentVolume says."""
    uses: tuple[Use, ...] = ()
    former_labels: tuple[str, ...] = ()
    """Those that a change has taken away, while objects may have them."""
    is_removed: bool = False
    wanted: int = 1
    """How often callers have changed what is wanted."""
    reached: int = 0
    """The ``wanted`` that was last brought about."""
    phase: VolumePhase = "Pending"
    phase_detail: ErrorText = ""
    since: str
    """When ``wanted`` was last changed."""
    created_at: str
    updated_at: str

    @classmethod
    def from_request(cls, request: VolumeRequest, *, id: str, vim_id: str, place: str, now: str) -> Self:
        """Return a new volume."""
        source = (
            request.source.model_dump(mode="json", by_alias=True, exclude_defaults=True) if request.source else None
        )
        return cls(
            id=id, cloud_region_id=request.cloud_region_id, vim_id=vim_id, name=request.name,
            place=request.namespace or place, size=request.size, access_modes=tuple(sorted(request.access_modes)),
            volume_mode=request.volume_mode, storage_class=request.storage_class, source=source,
            reclaim=request.reclaim, labels=request.labels, pv="" if source is None else own_name(id),
            since=now, created_at=now, updated_at=now,
        )  # fmt: skip

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be done."""
        return self.reached == self.wanted and not self.is_removed

    @property
    def is_decided(self) -> bool:
        """Whether a caller need not wait: nothing is to be done, or only others can do it."""
        waits = any(each.waits_for_consumer and not each.is_leaving for each in self.uses)
        return self.is_settled or (not self.is_removed and (waits or self.phase == "Failed"))

    @property
    def is_shared(self) -> bool:
        """Whether several VNFs may use it at the same time."""
        source = self.source or self.pv_source or {}
        return not EXCLUSIVE & set(self.access_modes) and bool(SHARED_SOURCES & set(source))

    @property
    def reserved_claim(self) -> ObjectKey:
        """The claim for which the volume is reserved while no VNF uses it. It also provisions the volume."""
        return ObjectKey(CLAIMS.api_version, CLAIMS.kind, self.place, own_name(self.id))

    @property
    def holders(self) -> Sequence[str]:
        """The references of those that use the volume."""
        return [each.reference for each in self.uses]

    @property
    def takes_another(self) -> bool:
        """Whether a VNF that does not use it yet can do so beside those that do."""
        return not self.uses or (self.is_shared and bool(self.pv_uid))

    @property
    def refusal(self) -> str:
        """Why a VNF that does not use it yet cannot do so now; "" if it can."""
        if self.is_removed:
            return "it is being removed"
        if not self.takes_another:
            return f"it is in use by {', '.join(self.holders)}"
        return f"it is Failed: {self.phase_detail}" if self.phase == "Failed" else ""

    def use_of(self, reference: str) -> Use | None:
        """Return the use by this reference."""
        return next((each for each in self.uses if each.reference == reference), None)

    def with_use(self, use: Use) -> Volume:
        """Return the volume with this use, in the place of one by the same reference."""
        if self.use_of(use.reference) is None:
            return self.model_copy(update={"uses": (*self.uses, use)})
        uses = tuple(use if each.reference == use.reference else each for each in self.uses)
        return self.model_copy(update={"uses": uses})

    def without_use(self, reference: str) -> Volume:
        """Return the volume without the use by this reference."""
        return self.model_copy(update={"uses": tuple(each for each in self.uses if each.reference != reference)})

    def asked_again(self, now: str) -> Volume:
        """Return the volume as it is after a caller has changed or repeated what is wanted."""
        phase = "Pending" if self.phase == "Failed" else self.phase
        changed = {"wanted": self.wanted + 1, "since": now, "updated_at": now, "phase": phase, "phase_detail": ""}
        return self.model_copy(update=changed)

    def without_region(self, reason: str, *, now: str) -> Volume:
        """Return the volume as it is when its region is not registered any more. Claims that were to go are out of reach."""
        if self.is_settled and self.phase_detail == reason:
            return self
        staying = tuple(each for each in self.uses if not each.is_leaving)
        return self.model_copy(
            update={
                "uses": staying,
                "reached": self.wanted,
                "phase": "Failed",
                "phase_detail": reason,
                "updated_at": now,
            }
        )

    def name_for(self, reference: str) -> str:
        """Return the name of the PersistentVolume for a further use; "" if the first one's is free."""
        if all(each.pv for each in self.uses if each.reference != reference):
            return ""
        return f"{own_name(self.id)}-{derived_id(reference)}"

    def differs_from(self, other: Volume) -> Sequence[str]:
        """Return the members of a request in which another volume differs."""
        members = ("place", "access_modes", "volume_mode", "storage_class", "source", "reclaim", "labels", "size")
        differing = [name for name in members if getattr(self, name) != getattr(other, name)]
        is_same_size = bytes_of(self.size) == bytes_of(other.size)
        return [name for name in differing if name != "size" or not is_same_size]

    def shown(self) -> PersistentVolume:
        """Return the volume as callers see it."""
        first = next((each for each in self.uses if not each.pv), None)
        return PersistentVolume(
            id=self.id, cloud_region_id=self.cloud_region_id, name=self.name, pv=self.pv if self.pv_uid else None,
            claim=Claim(namespace=first.namespace, name=first.claim_name) if first else None,
            phase=self.phase, phase_detail=self.phase_detail, is_decided=self.is_decided, vim_id=self.vim_id,
            refusal=bounded(self.refusal), in_use_by=tuple(self.holders), size=self.size,
            access_modes=self.access_modes, volume_mode=self.volume_mode, storage_class=self.storage_class,
            source=self.source, reclaim=self.reclaim, labels=self.labels, created_at=self.created_at,
            updated_at=self.updated_at, revision=self.revision,
        )  # fmt: skip


def own_name(volume_id: str) -> str:
    """Return the name of the objects that are the volume's own."""
    return f"kubevnfm-{volume_id}"
