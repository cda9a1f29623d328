"""Virtual links: networks of a region that VNFs share. infra-k8s owns them (multicloud.md chapter 12)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Protocol

import aiohttp
from kubevnfm_events.links import LinkStatus
from kubevnfm_events.objects import NetworkAttachment
from kubevnfm_kit.error_text import ErrorText
from kubevnfm_kit.json_types import JsonObject
from pydantic import Field, field_validator

from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.networks import AttachRequest
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_clients.multicloud.types import MultiCloudRequest, MultiCloudType, NamespaceName, Page, revision_query

LinkType = Literal["nad", "sriov", "ovs", "ovn4nfv", "ovn4nfv-provider", "kube-ovn", "udn", "manifests"]

_REFERENCE: Final = "[!-~]{1,255}"
Reference = Annotated[str, Field(min_length=1, max_length=255, pattern=f"^{_REFERENCE}$")]
"""The name of a user of a link: printable, without spaces."""
VNF_REFERENCE: Final = "vnf:"
"""The references of VNF instances begin so: operations take them and give them back, no caller."""
MOST_NAMESPACES: Final = 100
_LARGEST_SPEC: Final = 256 * 1024
_LARGEST_METADATA: Final = 16 * 1024


class LinkRequest(MultiCloudRequest):
    """A virtual link to create, or an existing one to refer to."""

    cloud_region_id: str = Field(min_length=1, max_length=255)
    name: NamespaceName
    type: LinkType
    metadata: JsonObject = Field(default_factory=dict)
    """Data of the caller: stored and shown, not used."""
    spec: JsonObject
    """By type: the specification's chapter about virtual links."""
    reference: Reference | None = None
    """The user; if absent, one is generated."""
    namespaces: tuple[NamespaceName, ...] | None = Field(default=None, max_length=MOST_NAMESPACES)
    """Where this user needs the objects that a namespace has; absent: as before."""
    allow_overlap: bool = False
    """Whether subnets may overlap with those of other links of the region."""

    @field_validator("spec")
    @classmethod
    def _is_bounded(cls, given: JsonObject) -> JsonObject:
        return _bounded(given, _LARGEST_SPEC)

    @field_validator("metadata")
    @classmethod
    def _is_short(cls, given: JsonObject) -> JsonObject:
        return _bounded(given, _LARGEST_METADATA)


class ReferenceRequest(MultiCloudRequest):
    """A user of a link."""

    namespaces: tuple[NamespaceName, ...] = Field(default=(), max_length=MOST_NAMESPACES)
    """Where the user needs the objects that a namespace has."""


class LinkResource(MultiCloudType):
    """An object in the region."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str
    uid: str = ""
    """Empty until the API server has confirmed the object."""


class VirtualLink(MultiCloudType):
    """A virtual link."""

    id: str
    cloud_region_id: str
    name: str
    type: LinkType
    metadata: JsonObject
    spec: JsonObject
    allow_overlap: bool = False
    use_count: int
    """The number of distinct references."""
    references: tuple[str, ...]
    adopted: bool = False
    """Whether its objects existed before it: they are not changed and not deleted."""
    resources: tuple[LinkResource, ...] = ()
    namespaces: tuple[str, ...] = ()
    """Those of its users."""
    status: LinkStatus
    status_detail: ErrorText = ""
    """Why it is not READY."""
    reference: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The one that the request has given or got; in the answer to a creation."""
    suspended: Suspension | None = Field(default=None, exclude_if=lambda value: value is None)
    """That of its region."""
    is_decided: bool = False
    """Whether waiting would not change the status; not shown."""
    created_at: str
    updated_at: str
    revision: int = 0
    """The document's; not shown."""


class LinkReference(MultiCloudType):
    """A user of a link."""

    reference: str


class CreatedLink(MultiCloudType):
    """The answer to a creation."""

    link: VirtualLink
    reference: str
    is_new: bool


class LinkSpecs(MultiCloudType):
    """JSON Schemas of ``spec``."""

    types: dict[str, JsonObject]
    """By the type of link."""
    definitions: JsonObject
    """The ``$defs`` that they refer to."""


class VirtualLinks(Protocol):
    """Served by infra-k8s: ``/internal/v1/virtual-links``. Every method may raise OutsideUnavailable."""

    async def create(self, wanted: LinkRequest, *, wait_s: float) -> CreatedLink:
        """Create a link, or take a reference of the one of this name; wait until it is READY or FAILED.

        Raises: Unprocessable, Conflict, BeingRemoved.
        """
        ...

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[VirtualLink]:
        """Return links by id; ``filters``: values by attribute; ``after``: the id behind which the page begins."""
        ...

    async def get(self, link_id: str, *, wait_s: float = 0.0) -> VirtualLink:
        """Return one link, once its status is decided or so much time has passed. Raises NotFound."""
        ...

    async def specs(self) -> LinkSpecs:
        """Return what the ``spec`` of each type of link can be."""
        ...

    async def hold(self, link_id: str, reference: str, wanted: ReferenceRequest, *, wait_s: float) -> VirtualLink:
        """Have the reference among those of the link; safe to repeat. Raises NotFound, BeingRemoved."""
        ...

    async def attach(self, asked: AttachRequest) -> tuple[NetworkAttachment, ...]:
        """Return the interfaces of an instance with what its pods need to know of the links; nothing is taken.

        Raises: Unprocessable, ConflictingInput with places below ``networks``.
        """
        ...

    async def release(
        self, link_id: str, reference: str | None, *, wait_s: float, if_revision: int | None = None
    ) -> VirtualLink | None:
        """Remove a reference, or the link if its creator alone uses it; None: the link is gone. Safe to repeat.

        Raises: NotFound (the link, or the reference), InUse, Conflict (another revision).
        """
        ...


class HttpVirtualLinks:
    """`VirtualLinks` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("infra-k8s", base_url, token, session)

    async def create(self, wanted: LinkRequest, *, wait_s: float) -> CreatedLink:
        body, query = wanted.model_dump(mode="json"), {"wait_s": wait_s}
        return CreatedLink.model_validate(await self._api.call("POST", "virtual-links", body=body, query=query))

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[VirtualLink]:
        query = {**filters, "limit": str(limit), **({} if after is None else {"after": after})}
        answer = await self._api.call("GET", "virtual-links", query=query)
        return Page([VirtualLink.model_validate(one) for one in answer["links"]], answer["next_after"])

    async def get(self, link_id: str, *, wait_s: float = 0.0) -> VirtualLink:
        found = await self._api.call("GET", "virtual-links", link_id, query={"wait_s": wait_s})
        return VirtualLink.model_validate(found)

    async def specs(self) -> LinkSpecs:
        return LinkSpecs.model_validate(await self._api.call("GET", "virtual-link-specs"))

    async def hold(self, link_id: str, reference: str, wanted: ReferenceRequest, *, wait_s: float) -> VirtualLink:
        path, body = ("virtual-links", link_id, "references", reference), wanted.model_dump(mode="json")
        return VirtualLink.model_validate(await self._api.call("PUT", *path, body=body, query={"wait_s": wait_s}))

    async def attach(self, asked: AttachRequest) -> tuple[NetworkAttachment, ...]:
        found = await self._api.call("POST", "network-attachments", body=asked.model_dump(mode="json"))
        return tuple(NetworkAttachment.model_validate(each) for each in found["networks"])

    async def release(
        self, link_id: str, reference: str | None, *, wait_s: float, if_revision: int | None = None
    ) -> VirtualLink | None:
        path = ("virtual-links", link_id, *(("references", reference) if reference is not None else ()))
        left = await self._api.call("DELETE", *path, query={"wait_s": wait_s, **revision_query(if_revision)})
        return None if left is None else VirtualLink.model_validate(left)


def is_reference(text: str) -> bool:
    """Return whether a text can be the name of a user."""
    return re.fullmatch(_REFERENCE, text) is not None


def _bounded(given: JsonObject, most: int) -> JsonObject:
    try:
        text = json.dumps(given)
    except TypeError as error:
        raise ValueError("no secrets expected: what a link has is stored and shown in clear") from error
    if len(text.encode()) > most:
        raise ValueError(f"up to {most} bytes expected")
    return given
