"""The answers of ONAP's paths, and bodies that are read by hand, as their document describes them."""

from __future__ import annotations

from typing import Annotated, Any, Final

from kubevnfm_clients.multicloud.health_checks import CheckStatus
from kubevnfm_clients.multicloud.types import MultiCloudRequest, MultiCloudType
from kubevnfm_kit.json_types import JsonObject
from pydantic import Field

from kubevnfm_lcm_api.http.documents import Document
from kubevnfm_lcm_api.http.routes import Answer, Parameter
from kubevnfm_lcm_api.onap.plain import status_of

DOCUMENT: Final = Document(
    "kubevnfm for clients of ONAP's multicloud-k8s",
    "The paths of the plug-in and of ncm; errors are plain text",
    ("VNF instances", "Connectivity", "Resource bundles", "Instances", "Objects", "Networks", "This document"),
    prefix="/v1",
    further=("/v2",),
    roots=("/api/multicloud-k8s/v1",),
    plain_status=status_of,
)
"""``roots``: behind ONAP's bus."""
PREFER: Final = Parameter("Prefer", "respond-async, or wait=<seconds>: how long the answer may take")
GONE: Final = {204: Answer("It is gone")}
NO_BODY: Final = {400: "The body is empty"}
NO_PARAMETER: Final = {400: "A required query parameter is missing"}
WRONG: Final = {422: "The body is malformed, or a member is not as expected"}
SEVERAL: Final = {409: "Several owners have a cloud region of this name"}
FAILED: Final = {500: "Its operation has failed; the VNF stays"}
AWAY: Final = {503: "The region, or another service, does not answer"}
NOT_THERE: Final = {404: "What the body names does not exist"}


def listed(model: type[MultiCloudType], description: str) -> dict[int, Answer]:
    """Return the answers of a list, which has no pages."""
    return {200: Answer(description, model, is_list=True, has_pages=False)}


class VnfIds(MultiCloudType):
    """The VNFs of a namespace."""

    vnf_id_list: tuple[str, ...]


class ConnectivityForm(MultiCloudRequest):
    """The ``metadata`` of a region; its kubeconfig is the ``file``."""

    cloud_owner: Annotated[str, Field(alias="cloud-owner")]
    cloud_region: Annotated[str, Field(alias="cloud-region")]
    other: Annotated[JsonObject | None, Field(alias="other-connectivity-list")] = None


class Connectivity(MultiCloudType):
    """A cloud region; its kubeconfig and other secrets are ``***``."""

    cloud_owner: Annotated[str, Field(alias="cloud-owner")]
    cloud_region: Annotated[str, Field(alias="cloud-region")]
    kubeconfig: str
    other: Annotated[JsonObject, Field(alias="other-connectivity-list")]


class ShownDefinition(MultiCloudType):
    """A definition."""

    rb_name: Annotated[str, Field(alias="rb-name")]
    rb_version: Annotated[str, Field(alias="rb-version")]
    chart_name: Annotated[str | None, Field(alias="chart-name")] = None
    description: str | None = None
    labels: dict[str, str] | None = None


class ShownProfile(MultiCloudType):
    """A profile."""

    rb_name: Annotated[str, Field(alias="rb-name")]
    rb_version: Annotated[str, Field(alias="rb-version")]
    profile_name: Annotated[str, Field(alias="profile-name")]
    release_name: Annotated[str | None, Field(alias="release-name")] = None
    namespace: str | None = None
    kubernetes_version: Annotated[str | None, Field(alias="kubernetes-version")] = None
    labels: dict[str, str] | None = None


class GroupVersionKind(MultiCloudType):
    """The kind of an object."""

    group: Annotated[str, Field(alias="Group")]
    version: Annotated[str, Field(alias="Version")]
    kind: Annotated[str, Field(alias="Kind")]


class InstanceObject(MultiCloudType):
    """An object of an instance."""

    gvk: Annotated[GroupVersionKind, Field(alias="GVK")]
    name: Annotated[str, Field(alias="Name")]


class ShownRequest(MultiCloudType):
    """The request that would bring an instance up; the names of its bundle are empty if it was made otherwise."""

    rb_name: Annotated[str, Field(alias="rb-name")]
    rb_version: Annotated[str, Field(alias="rb-version")]
    profile_name: Annotated[str, Field(alias="profile-name")]
    release_name: Annotated[str, Field(alias="release-name")]
    cloud_region: Annotated[str, Field(alias="cloud-region")]
    labels: dict[str, str]
    values: Annotated[dict[str, str], Field(alias="override-values")]
    """Secret ones are ``***``."""


class ListedInstance(MultiCloudType):
    """An instance in a list."""

    id: str
    request: ShownRequest
    namespace: str
    release_name: Annotated[str, Field(alias="release-name")]


class ShownInstance(ListedInstance):
    """An instance."""

    resources: tuple[InstanceObject, ...]
    hooks: None


class ObjectNow(MultiCloudType):
    """An object as its region has it now."""

    name: str
    gvk: Annotated[GroupVersionKind, Field(alias="GVK")]
    status: Any = None
    """The whole object; null: it is not there, or is left out because it is too large."""


class FoundObjects(MultiCloudType):
    """Objects of a region."""

    count: Annotated[int, Field(alias="resourceCount")]
    objects: Annotated[tuple[ObjectNow, ...], Field(alias="resourcesStatus")]


class FoundOfInstance(FoundObjects):
    """Objects of an instance."""

    request: ShownRequest


class InstanceState(FoundOfInstance):
    """The state of an instance, with its pods."""

    ready: bool
    truncated: bool | None = None
    """Whether the region has more pods than an answer may have, 1,000 or 8 MiB; absent: it has not."""


class ShownSubscription(MultiCloudType):
    """A subscription."""

    name: str
    interval: Annotated[int, Field(alias="min-notify-interval")]
    callback: Annotated[str, Field(alias="callback-url")]
    metadata: JsonObject
    updated: Annotated[str, Field(alias="last-update-time")]
    notified: Annotated[str, Field(alias="last-notify-time")]
    status: Annotated[int, Field(alias="last-notify-status")]


class CheckSummary(MultiCloudType):
    """A health check."""

    id: Annotated[str, Field(alias="healthcheck-id")]
    status: CheckStatus


class CheckOverview(MultiCloudType):
    """The health checks of an instance."""

    instance: Annotated[str, Field(alias="instance-id")]
    summary: Annotated[tuple[CheckSummary, ...], Field(alias="healthcheck-summary")]
    hooks: None


class CheckResult(MultiCloudType):
    """One test of a chart."""

    name: str
    status: CheckStatus
    started_at: str
    completed_at: str
    kind: str
    namespace: str
    reason: str
    """Why it has failed, with the end of its log."""


class CheckSuite(MultiCloudType):
    """The tests of a health check."""

    started: Annotated[str, Field(alias="StartedAt")]
    completed: Annotated[str, Field(alias="CompletedAt")]
    results: Annotated[tuple[CheckResult, ...], Field(alias="Results")]


class ShownCheck(CheckSummary):
    """A health check with its tests."""

    instance: Annotated[str, Field(alias="instance-id")]
    suite: Annotated[CheckSuite, Field(alias="test-suite")]
    reason: str
    """Why there is no progress, or no result."""


class NetworkMetadata(MultiCloudType):
    """The name of a network, and data of the caller."""

    name: str
    description: str | None = None
    user_data1: Annotated[str | None, Field(alias="userData1")] = None
    user_data2: Annotated[str | None, Field(alias="userData2")] = None


class ShownNetwork(MultiCloudType):
    """A network, as it was sent."""

    metadata: NetworkMetadata
    spec: JsonObject
