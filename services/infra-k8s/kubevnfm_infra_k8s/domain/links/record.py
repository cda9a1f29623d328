"""A virtual link as it is stored: the wanted state, the users, and what of it exists in the region. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_clients.multicloud.links import LinkRequest, LinkResource, LinkType, VirtualLink
from kubevnfm_events.links import LinkStatus
from kubevnfm_kit.error_text import ErrorText
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_infra_k8s.domain.links.spec import LinkSpec, Places
from kubevnfm_infra_k8s.domain.links.types import stored_spec
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.reconciling.ports import Region
from kubevnfm_infra_k8s.domain.reconciling.record import Part, WantedDocument

MOST_HOLDERS: Final = 10_000
LINK_LABEL: Final = "kubevnfm.io/virtual-link-id"
"""On the objects of a link: its id."""
SHARED_LABEL: Final = "kubevnfm.io/virtual-links"
"""On objects that several links have."""


class Holder(Part):
    """A user of a link."""

    reference: str
    namespaces: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """Those that it has fixed for its interfaces."""


class LinkObject(Part):
    """An object of a link, stored before it is created."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str
    uid: str = ""
    """Empty until the API server has confirmed it; the label of an object then says whose it is."""
    adopted: bool = False
    shared: bool = False

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.api_version, self.kind, self.namespace, self.name)

    @classmethod
    def from_key(cls, key: ObjectKey, *, shared: bool) -> LinkObject:
        """Return the entry of an object that is to be created."""
        return cls(api_version=key.api_version, kind=key.kind, namespace=key.namespace, name=key.name, shared=shared)


class Link(WantedDocument):
    """The document of a link."""

    id: str
    cloud_region_id: str
    vim_id: str
    links_namespace: str
    sriov_namespace: str
    name: str
    type: LinkType
    metadata: JsonObject
    spec: JsonObject
    allow_overlap: bool = False
    creator: str
    """The reference of the first user."""
    holders: tuple[Holder, ...]
    objects: tuple[LinkObject, ...] = ()
    labelled: tuple[str, ...] = ()
    """The namespaces that have the label of the link, stored before they get it."""
    status: LinkStatus
    status_detail: ErrorText = ""
    wanted: int = 1
    """How often the users have changed what is wanted."""
    reached: int = 0
    """The ``wanted`` that was last brought about, or has failed for good."""
    served: int = 0
    """The ``wanted`` that was last brought about but for what ``lacking`` says."""
    lacking: tuple[str, ...] = ()
    """The namespaces of users that did not exist then, were being deleted, or had objects of others in the way."""
    asked_at: str
    """When ``wanted`` has last changed."""
    created_at: str
    updated_at: str

    @classmethod
    def from_request(cls, request: LinkRequest, region: Region, *, id: str, reference: str, now: str) -> Link:
        """Return a new link with its first user."""
        given = request.model_dump(exclude={"reference", "namespaces"})
        return cls(
            id=id, vim_id=region.vim_id, links_namespace=region.links_namespace,
            sriov_namespace=region.sriov_namespace, creator=reference,
            holders=(_holder(reference, request.namespaces or ()),), status="PENDING",
            asked_at=now, created_at=now, updated_at=now, **given,
        )  # fmt: skip

    @property
    def references(self) -> tuple[str, ...]:
        return tuple(holder.reference for holder in self.holders)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be done."""
        return self.reached == self.wanted and not self.is_removed

    @property
    def is_decided(self) -> bool:
        """Whether a caller need not wait: nothing is to be done, or the link has FAILED or lacks a namespace, and is tried further."""
        return self.is_settled or self.status == "FAILED" or self._is_served_in_part

    @property
    def is_removed(self) -> bool:
        """Whether the link is being removed."""
        return self.status == "REMOVING"

    @property
    def _is_served_in_part(self) -> bool:
        return self.served == self.wanted and self.status in ("PENDING", "FAILED")

    def serves(self, namespaces: Sequence[str]) -> bool:
        """Return whether the link is ready in these namespaces, though perhaps not in those of other users."""
        if self._is_served_in_part:
            return not {*namespaces} & {*self.lacking}
        return self.status == "READY" and self.is_settled

    def read_spec(self) -> LinkSpec:
        """Return the spec in its type."""
        return stored_spec(self.type, self.spec)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of the users."""
        return tuple(sorted({each for holder in self.holders for each in holder.namespaces}))

    @property
    def places(self) -> Places:
        """The namespaces of the objects."""
        return Places(self.namespaces, self.links_namespace, self.sriov_namespace)

    def namespaces_of(self, reference: str) -> tuple[str, ...]:
        """Return the namespaces of one user."""
        return next((each.namespaces for each in self.holders if each.reference == reference), ())

    def addresses_of(self, reference: str) -> tuple[str, ...]:
        """Return the addresses that one user has fixed."""
        return next((each.addresses for each in self.holders if each.reference == reference), ())

    def holder_of_address(self, address: str, *, other_than: str) -> str | None:
        """Return the user that has fixed an address, if it is another one."""
        return next(
            (each.reference for each in self.holders if address in each.addresses and each.reference != other_than),
            None,
        )

    def with_holder(
        self, reference: str, namespaces: Sequence[str], *, addresses: Sequence[str] = (), now: str
    ) -> Link:
        """Return the link with this user. Its objects are checked again: a new user repairs what others have changed."""
        others = [each for each in self.holders if each.reference != reference]
        changed = self.model_copy(update={"holders": (*others, _holder(reference, namespaces, addresses))})
        return changed.asked_again(now)

    def without_holder(self, reference: str, *, now: str) -> Link:
        """Return the link without this user: REMOVING if it was the last."""
        left = tuple(each for each in self.holders if each.reference != reference)
        changed = self.model_copy(update={"holders": left})
        if not left:
            return changed.removing(now)
        return changed.asked_again(now) if changed.namespaces != self.namespaces else changed

    def counted_only(self, changed: Link) -> Link | None:
        """Return the link with the users of a changed one and no other change; None if that would need other objects."""
        if changed.is_removed or changed.namespaces != self.namespaces:
            return None
        return self.model_copy(update={"holders": changed.holders})

    def removing(self, now: str) -> Link:
        """Return the link as it is while its objects are deleted."""
        return self.asked_again(now).model_copy(update={"status": "REMOVING", "status_detail": "", "holders": ()})

    def without_region(self, reason: str, *, now: str) -> Link:
        """Return the link as it is when its region is not registered any more."""
        if self.status_detail == reason:
            return self
        return self.model_copy(
            update={"status": "FAILED", "status_detail": reason, "reached": self.wanted, "updated_at": now}
        )

    def asked_again(self, now: str) -> Link:
        """Return the link as it is after a user has changed or repeated what is wanted."""
        status = "READY" if self.status == "READY" else "PENDING"
        return self.model_copy(
            update={"status": status, "status_detail": "", "wanted": self.wanted + 1, "asked_at": now}
        )

    def shown(self) -> VirtualLink:
        """Return the link as the gateway gets it."""
        own = [each for each in self.objects if each.uid and not each.shared]
        return VirtualLink(
            id=self.id, cloud_region_id=self.cloud_region_id, name=self.name, type=self.type,
            metadata=self.metadata, spec=self.spec, allow_overlap=self.allow_overlap,
            use_count=len(self.holders), references=self.references,
            adopted=bool(own) and all(each.adopted for each in own),
            resources=tuple(LinkResource.model_validate(each.model_dump()) for each in self.objects),
            namespaces=self.namespaces, status=self.status, status_detail=self.status_detail,
            is_decided=self.is_decided, created_at=self.created_at, updated_at=self.updated_at,
            revision=self.revision,
        )  # fmt: skip


def _holder(reference: str, namespaces: Sequence[str], addresses: Sequence[str] = ()) -> Holder:
    return Holder(
        reference=reference, namespaces=tuple(sorted(set(namespaces))), addresses=tuple(sorted(set(addresses)))
    )


@dataclass(frozen=True)
class Difference:
    """A member in which two specs differ."""

    place: str
    there: object
    given: object


def differences(there: JsonMapping, given: JsonMapping, place: str = "spec") -> list[Difference]:
    """Return in which members a spec differs from the one that a link has."""
    found: list[Difference] = []
    for name in sorted({*there, *given}):
        here, wanted = there.get(name), given.get(name)
        if isinstance(here, dict) and isinstance(wanted, dict):
            found += differences(here, wanted, f"{place}/{name}")
        elif here != wanted:
            found.append(Difference(f"{place}/{name}", here, wanted))
    return found
