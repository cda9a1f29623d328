"""Cloud regions: clusters that were registered by kubeconfig. vim-registry owns them; each is one of its VIMs (multicloud.md MC-071)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Protocol

import aiohttp
from kubevnfm_events.vim import VimStatus
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import MASK, KeyRing, Secret, SecretParams, is_mask, sealing
from kubevnfm_sol.base import SolPatch
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.region_inventories import RegionInventory
from kubevnfm_clients.multicloud.region_views import KubernetesObject, RegionFeatures, RegionHealth
from kubevnfm_clients.multicloud.suspension import Suspension, SuspensionRequest
from kubevnfm_clients.multicloud.types import (
    HttpUrl,
    LabelKey,
    Labels,
    LabelValue,
    MultiCloudRequest,
    MultiCloudType,
    NamespaceName,
    Page,
    Visible,
    revision_query,
)

RegionAuth = Literal["token", "token-request", "client-certificate", "oidc"]
KUBECONFIG_BYTES: Final = 2**20
"""The largest kubeconfig."""
MOST_LABELS: Final = 64
KEPT_BYTES: Final = 64 * 1024
"""JSON that is kept for clients, of each attribute."""
_CONNECTIVITY: Final = "other-connectivity-list"


_API_VERSION: Final = r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?v[0-9]{1,3}((alpha|beta)[0-9]{1,3})?$"
_KEY: Final = r"[A-Za-z0-9]([A-Za-z0-9./_-]*[A-Za-z0-9])?"
_VALUE: Final = r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_REQUIREMENT: Final = rf"(!?{_KEY}|{_KEY} ?(=|==|!=) ?{_VALUE}|{_KEY} (in|notin) \({_VALUE}(, ?{_VALUE})*\))"
_SELECTOR: Final = rf"^{_REQUIREMENT}(, ?{_REQUIREMENT})*$"
"""The grammar of selectors; the API server would answer 400 for another text."""


_PRIVATE_KEY: Final = "PRIVATE KEY-----"


def _with_keys_hidden(value: Any) -> Any:
    """Return what is kept with private keys as secrets, whatever their attributes are named: ``cert-to-present`` may have one."""
    if isinstance(value, Mapping):
        return {name: _with_keys_hidden(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_keys_hidden(each) for each in value]
    return Secret(value) if isinstance(value, str) and _PRIVATE_KEY in value else value


def _is_small(value: JsonObject) -> JsonObject:
    # Secrets have no size here: vim-registry counts their texts.
    if len(json.dumps(value, default=str)) > KEPT_BYTES:
        raise ValueError(f"at most {KEPT_BYTES} bytes of JSON expected")
    return value


def _is_without_masks(value: JsonObject) -> JsonObject:
    if _has_mask(value):
        raise ValueError(f"{MASK} stands for a secret when it is shown: the secret itself expected")
    return value


def _has_mask(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_mask, value.values()))
    return any(map(_has_mask, value)) if isinstance(value, list) else is_mask(value)


_Kept = Annotated[SecretParams, AfterValidator(_with_keys_hidden), AfterValidator(_is_small)]
RegionKeyPart = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""An owner, or the name of a region: a segment of paths."""


class OidcClient(MultiCloudRequest):
    """A client of an OpenID provider whose tokens the API server accepts (RFC 6749 4.4)."""

    token_url: HttpUrl
    """Its certificate is verified by the CA of the kubeconfig, and those of the system."""
    client_id: Visible
    client_secret: Annotated[Secret, WithJsonSchema({"type": "string"})]
    scope: Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[!-~]+( [!-~]+)*$")] = "openid"


class TokenRequest(MultiCloudRequest):
    """The ServiceAccount whose short-lived tokens all calls but those for tokens have."""

    namespace: NamespaceName
    service_account: Annotated[
        str, StringConstraints(max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", min_length=1)
    ]
    expiration_s: int = Field(default=3600, ge=600, le=2**32)
    audiences: tuple[Visible, ...] = Field(default=(), max_length=16)
    """Empty: that of the API server."""


class Kubeconfig(MultiCloudRequest):
    """New access data of a region: either a kubeconfig, or where one is read from."""

    kubeconfig: Annotated[Secret, WithJsonSchema({"type": "string", "contentEncoding": "base64"})] | None = None
    inventory: RegionInventory | None = None
    context: str | None = Field(default=None, min_length=1, max_length=253)
    """None: the current context of the kubeconfig."""
    oidc: OidcClient | None = None
    """In place of credentials in the kubeconfig; not beside ``inventory``."""

    @field_validator("inventory")
    @classmethod
    def _not_both(cls, inventory: RegionInventory | None, others: ValidationInfo) -> RegionInventory | None:
        if inventory is not None and others.data.get("kubeconfig") is not None:
            raise ValueError("no value expected beside kubeconfig")
        return inventory

    @field_validator("oidc")
    @classmethod
    def _has_kubeconfig(cls, oidc: OidcClient | None, others: ValidationInfo) -> OidcClient | None:
        if oidc is not None and others.data.get("inventory") is not None:
            raise ValueError("no value expected beside inventory")
        return oidc


class RegionRequest(Kubeconfig):
    """A region to register."""

    cloud_owner: RegionKeyPart
    cloud_region: RegionKeyPart
    token_request: TokenRequest | None = None
    labels: Labels = Field(default_factory=dict, max_length=MOST_LABELS)
    kv: _Kept = Field(default_factory=dict)
    default_namespace_labels: Labels = Field(default_factory=dict, max_length=MOST_LABELS)
    """Labels of the namespaces that are created there."""
    protected_namespaces: tuple[NamespaceName, ...] = Field(default=(), max_length=1000)
    """Namespaces in which nothing is created."""
    links_namespace: NamespaceName = "default"
    sriov_namespace: NamespaceName = "sriov-network-operator"
    other_connectivity: _Kept = Field(default_factory=dict, alias=_CONNECTIVITY)
    """Kept as it is, for clients of ONAP; its secrets are sealed."""


class RegionPatch(SolPatch, MultiCloudType):
    """A JSON Merge Patch (RFC 7396) of what a registration says of a region: null removes a label or an attribute."""

    model_config = ConfigDict(alias_generator=None, extra="forbid")

    labels: dict[LabelKey, LabelValue | None] | None = None
    kv: Annotated[_Kept, AfterValidator(_is_without_masks)] | None = None


class ObjectsWanted(MultiCloudRequest):
    """Which objects are read, spelled as in the query of ``.../resources``."""

    apiVersion: Annotated[str, StringConstraints(max_length=317, pattern=_API_VERSION)]  # noqa: N815  # as it is on the wire
    kind: Annotated[str, StringConstraints(max_length=63, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]
    namespace: NamespaceName | None = None
    name: (
        Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$")] | None
    ) = None
    labels: Annotated[str, StringConstraints(max_length=1024, pattern=_SELECTOR)] | None = None
    """A label selector, as kubectl has it; the marker of the next page, which has it too, must fit in a line of HTTP."""


class CloudRegion(MultiCloudType):
    """A registered region; no part of its kubeconfig is shown."""

    id: str
    """``<owner>/<region>``."""
    vim_id: str
    cloud_owner: str
    cloud_region: str
    endpoint: str
    server_version: str
    auth: RegionAuth
    not_after: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """When the first part of the access data expires; absent: nothing says when."""
    kubeconfig: Literal["***"] = "***"
    inventory: JsonObject | None = Field(default=None, exclude_if=lambda value: value is None)
    """Where the kubeconfig is read from, without secrets; absent: a request has brought it."""
    sha256: str
    """The hash of the kubeconfig; empty after the VIM got other access data."""
    context: str
    token_request: TokenRequest | None = Field(default=None, exclude_if=lambda value: value is None)
    status: VimStatus
    status_reason: str
    capabilities: tuple[str, ...]
    missing_permissions: tuple[str, ...]
    """The permissions that some resources of this API need, and the user of the kubeconfig lacks."""
    labels: dict[str, str]
    kv: JsonObject
    default_namespace_labels: dict[str, str]
    protected_namespaces: tuple[str, ...]
    links_namespace: str
    sriov_namespace: str
    other_connectivity: JsonObject = Field(alias=_CONNECTIVITY)
    """Its secrets are ``***``."""
    suspended: Suspension | None = Field(default=None, exclude_if=lambda value: value is None)
    created_at: str
    updated_at: str
    revision: int = 0
    """The document's; for conditional writes, and not shown."""


class CloudRegions(Protocol):
    """Served by vim-registry: ``/internal/v1/cloud-regions``."""

    async def register(self, wanted: RegionRequest) -> tuple[CloudRegion, bool]:
        """Verify and register; return the region, and whether it is new.

        Raises Unprocessable (the kubeconfig, or the cluster), Conflict (the region has another endpoint).
        """
        ...

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        """Return regions by id; ``filters``: values by attribute; ``after``: the id behind which the page begins."""
        ...

    async def get(self, owner: str, region: str) -> CloudRegion:
        """Return a region. Raises NotFound."""
        ...

    async def health(self, owner: str, region: str) -> RegionHealth:
        """Call the cluster once. Raises NotFound."""
        ...

    async def features(self, owner: str, region: str) -> RegionFeatures:
        """Read what the nodes have. Raises NotFound, Unprocessable, RegionUnavailable."""
        ...

    async def resources(
        self, owner: str, region: str, wanted: ObjectsWanted, *, limit: int, after: str | None = None
    ) -> Page[KubernetesObject]:
        """Read objects of one kind. Raises NotFound, Unprocessable, UnknownKind, RegionUnavailable."""
        ...

    async def change(self, owner: str, region: str, patch: RegionPatch, *, if_revision: int | None) -> CloudRegion:
        """Change what the registration says of a region; ``if_revision``: None: whatever it is, as below. Raises NotFound, Unprocessable, Conflict."""
        ...

    async def rotate(self, owner: str, region: str, access: Kubeconfig, *, if_revision: int | None) -> CloudRegion:
        """Verify other access data of the same cluster and use them. Raises NotFound, Unprocessable, Conflict."""
        ...

    async def suspend(self, owner: str, region: str, wanted: SuspensionRequest, *, by: str) -> Suspension:
        """Suspend a region, or give another reason. Raises NotFound."""
        ...

    async def resume(self, owner: str, region: str) -> None:
        """End the suspension. Raises NotFound if there is none."""
        ...

    async def suspensions(self) -> Mapping[str, Suspension]:
        """Return the suspensions of all regions, by the id of the VIM."""
        ...

    async def delete(self, owner: str, region: str, *, if_revision: int | None) -> None:
        """Remove the registration. Raises NotFound, Conflict, InUse."""
        ...


class HttpCloudRegions:
    """`CloudRegions` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession, ring: KeyRing) -> None:
        self._api = InternalApi("vim-registry", base_url, token, session)
        self._ring = ring

    async def register(self, wanted: RegionRequest) -> tuple[CloudRegion, bool]:
        answer = await self._api.call("POST", "cloud-regions", body=self._sealed(wanted))
        return CloudRegion.model_validate(answer["region"]), bool(answer["is_new"])

    async def find(self, filters: Mapping[str, str], *, limit: int, after: str | None = None) -> Page[CloudRegion]:
        query: JsonMapping = {**filters, "limit": str(limit), **({} if after is None else {"after": after})}
        answer = await self._api.call("GET", "cloud-regions", query=query)
        return Page([CloudRegion.model_validate(one) for one in answer["regions"]], answer["next_after"])

    async def get(self, owner: str, region: str) -> CloudRegion:
        return CloudRegion.model_validate(await self._api.call("GET", "cloud-regions", owner, region))

    async def health(self, owner: str, region: str) -> RegionHealth:
        return RegionHealth.model_validate(await self._api.call("GET", "cloud-regions", owner, region, "health"))

    async def features(self, owner: str, region: str) -> RegionFeatures:
        answer = await self._api.call("GET", "cloud-regions", owner, region, "features")
        # In a thread: those of 5,000 nodes are some 20 MB.
        return await asyncio.to_thread(RegionFeatures.model_validate, answer)

    async def resources(
        self, owner: str, region: str, wanted: ObjectsWanted, *, limit: int, after: str | None = None
    ) -> Page[KubernetesObject]:
        query = {
            **wanted.model_dump(exclude_none=True),
            "limit": str(limit),
            **({} if after is None else {"after": after}),
        }
        answer = await self._api.call("GET", "cloud-regions", owner, region, "resources", query=query)
        return Page([KubernetesObject.model_validate(one) for one in answer["items"]], answer["next_after"])

    async def change(self, owner: str, region: str, patch: RegionPatch, *, if_revision: int | None) -> CloudRegion:
        # Nulls stay: they remove.
        body = patch.model_dump(mode="json", exclude_unset=True, context=sealing(self._ring))
        query = revision_query(if_revision)
        answer = await self._api.call("PATCH", "cloud-regions", owner, region, body=body, query=query)
        return CloudRegion.model_validate(answer)

    async def rotate(self, owner: str, region: str, access: Kubeconfig, *, if_revision: int | None) -> CloudRegion:
        path, query = ("cloud-regions", owner, region, "kubeconfig"), revision_query(if_revision)
        answer = await self._api.call("PUT", *path, body=self._sealed(access), query=query)
        return CloudRegion.model_validate(answer)

    async def suspend(self, owner: str, region: str, wanted: SuspensionRequest, *, by: str) -> Suspension:
        path, body = ("cloud-regions", owner, region, "suspension"), {**wanted.model_dump(), "by": by}
        return Suspension.model_validate(await self._api.call("PUT", *path, body=body))

    async def resume(self, owner: str, region: str) -> None:
        await self._api.call("DELETE", "cloud-regions", owner, region, "suspension")

    async def suspensions(self) -> Mapping[str, Suspension]:
        answer = await self._api.call("GET", "region-suspensions")
        return {vim_id: Suspension.model_validate(one) for vim_id, one in answer["suspensions"].items()}

    async def delete(self, owner: str, region: str, *, if_revision: int | None) -> None:
        await self._api.call("DELETE", "cloud-regions", owner, region, query=revision_query(if_revision))

    def _sealed(self, request: MultiCloudRequest) -> JsonObject:
        return request.model_dump(mode="json", by_alias=True, exclude_none=True, context=sealing(self._ring))
