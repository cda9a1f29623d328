"""The types of answers and requests that have no other model; only the document uses them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.problem import ProblemDetails
from pydantic import BaseModel, ConfigDict, Field

from kubevnfm_lcm_api.notifications.domain.lifecycle import LifecycleChangeFilter
from kubevnfm_lcm_api.notifications.domain.packages import PkgmNotificationsFilter


class _Shown(BaseModel):
    """Attributes spelled as they are on the wire."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Link(_Shown):
    """A link (SOL013 clause 5.1)."""

    href: str
    """Absolute."""


class Linked(_Shown):
    """A resource with links: ``self`` always, the others as the state allows."""

    links: dict[str, Link] = Field(alias="_links")


class LinkToSelf(_Shown):
    """The list of versions has its links in the form of OpenStack."""

    rel: str
    href: str


class ServedVersion(_Shown):
    """One version of the VIM API."""

    id: str
    status: str
    links: list[LinkToSelf]


class ServedVersions(_Shown):
    """The versions that clients of the VIM API read first."""

    versions: list[ServedVersion]


class ApiVersion(_Shown):
    """One version that can be asked for in ``Version``."""

    version: str
    isDeprecated: bool  # noqa: N815  # as it is on the wire


class ApiVersionInformation(_Shown):
    """SOL013 clause 9.3."""

    uriPrefix: str  # noqa: N815  # as it is on the wire
    apiVersions: list[ApiVersion]  # noqa: N815  # as it is on the wire


class LccnSubscription(_Shown):
    """Clause 5.5.2.16; authentication is never shown."""

    id: str
    callbackUri: str  # noqa: N815  # as it is on the wire
    verbosity: Literal["FULL", "SHORT"]
    filter: LifecycleChangeFilter | None = None
    links: dict[str, Link] = Field(alias="_links")


class PkgmSubscription(_Shown):
    """Clause 10.5.2.4; authentication is never shown."""

    id: str
    callbackUri: str  # noqa: N815  # as it is on the wire
    filter: PkgmNotificationsFilter | None = None
    links: dict[str, Link] = Field(alias="_links")


class Vim(_Shown):
    """A VIM in the form of Tacker's clients; every secret is ``***``."""

    id: str
    name: str
    description: str | None = None
    tenant_id: str
    type: Literal["openstack", "kubernetes"]
    status: Literal["PENDING", "ACTIVE", "UNREACHABLE", "ERROR"]
    status_reason: str | None = None
    """The reason why it is UNREACHABLE or in ERROR."""
    is_default: bool
    placement_attr: JsonObject
    """``regions``: OpenStack's regions, or the cluster's namespaces."""
    auth_url: str
    auth_cred: JsonObject
    vim_project: JsonObject
    extra: JsonObject
    created_at: str
    updated_at: str


class VimAnswer(_Shown):
    """One VIM; fewer attributes if ``fields`` selects some."""

    vim: JsonObject


class VimCreated(_Shown):
    """The VIM as it is registered."""

    vim: Vim


class VimsAnswer(_Shown):
    """VIMs; fewer attributes of each if ``fields`` selects some."""

    vims: list[JsonObject]


class VimWanted(_Shown):
    """A VIM to register."""

    name: str
    description: str = ""
    tenant_id: str = "default"
    type: Literal["openstack", "kubernetes"]
    is_default: bool | Literal["True", "False"] = False
    auth_url: str
    """Keystone, or the Kubernetes API."""
    auth_cred: dict[str, str]
    """OpenStack: username, password, user_domain_name, cert_verify. Kubernetes: bearer_token, or username and password, or
    these with oidc_token_url and client_id; ssl_ca_cert (PEM, ``system`` or ``None``)."""
    vim_project: dict[str, str] = Field(default_factory=dict)
    """OpenStack: name and project_domain_name. Kubernetes: name, the default namespace."""
    extra: JsonObject = Field(default_factory=dict)


class CreateVim(_Shown):
    """VIMs are wrapped."""

    vim: VimWanted


class VimChange(_Shown):
    """The changeable attributes of a VIM; not ``vim_project`` while instances use it."""

    name: str | None = None
    description: str | None = None
    is_default: bool | Literal["True", "False"] | None = None
    auth_cred: dict[str, str] | None = None
    vim_project: dict[str, str] | None = None


class UpdateVim(_Shown):
    """Changes are wrapped too."""

    vim: VimChange


class TackerErrorDetails(_Shown):
    """An error in the form of Tacker's clients."""

    type: str
    message: str
    detail: str


class TackerError(_Shown):
    """The errors of the VIM API."""

    error: TackerErrorDetails = Field(alias="TackerError")


class Step(_Shown):
    """One step of an operation's plan."""

    name: str
    title: str
    state: str
    attempt: int
    after: list[str]
    """The steps that must have ended first."""
    startedAt: str | None = None  # noqa: N815  # as it is on the wire
    endedAt: str | None = None  # noqa: N815  # as it is on the wire
    error: ProblemDetails | None = None


class Node(_Shown):
    """The tasks on one machine."""

    name: str
    tasks: list[JsonObject]


class CleanUp(_Shown):
    """The removal of the resources that a failed operation left."""

    id: str
    state: str
    stateEnteredTime: str  # noqa: N815  # as it is on the wire
    error: ProblemDetails | None = None
    steps: list[Step]


class OperationView(Linked):
    """An operation with its steps, its nodes and their tasks."""

    id: str
    vnfInstanceId: str  # noqa: N815  # as it is on the wire
    operation: str
    state: str
    startTime: str  # noqa: N815  # as it is on the wire
    stateEnteredTime: str  # noqa: N815  # as it is on the wire
    error: ProblemDetails | None = None
    steps: list[Step]
    nodes: list[Node]
    tasks: list[JsonObject]
    """Tasks that belong to no machine."""
    cleanUp: CleanUp | None = None  # noqa: N815  # as it is on the wire


class DeliveriesView(Linked):
    """The state of a subscription's deliveries."""

    id: str
    callbackUri: str  # noqa: N815  # as it is on the wire
    state: Literal["IDLE", "DELIVERING", "WAITING"]
    """WAITING: the subscriber has not accepted a notification; the next try is at nextTryAt."""
    pending: int
    oldestPendingAt: str | None = None  # noqa: N815  # as it is on the wire
    failuresInARow: int  # noqa: N815  # as it is on the wire
    dropped: int
    """Notifications that were given up since the subscription was created."""
    lastSuccessAt: str | None = None  # noqa: N815  # as it is on the wire
    lastFailureAt: str | None = None  # noqa: N815  # as it is on the wire
    lastFailure: str | None = None  # noqa: N815  # as it is on the wire
    nextTryAt: str | None = None  # noqa: N815  # as it is on the wire


class VimUsers(_Shown):
    """The VNF instances that have resources on a VIM."""

    users: list[str]


class InstanceExists(_Shown):
    """A VNF instance that exists."""

    id: str


class ParkedCommand(_Shown):
    """A command whose handling has ended the process again and again (`handler-ended-process` in docs/errors.md)."""

    service: str
    command: str
    """Its type."""
    operationId: str  # noqa: N815  # as it is on the wire
    parkedAt: datetime  # noqa: N815  # as it is on the wire


class AwaitedCallbacks(_Shown):
    """The call-back of a workload cluster that an instance awaits now."""

    awaited: list[AwaitedCallback]


class Health(_Shown):
    """Whether the process lives, or is ready to serve."""

    status: str
    packageCode: str | None = None  # noqa: N815  # as it is on the wire
    """How the service runs code of packages, if it does: ``confined``, ``trusted`` or ``refused`` (docs/security.md)."""
    parkedCommands: list[ParkedCommand] | None = None  # noqa: N815  # as it is on the wire
    """The commands of the last day that the service does not handle any more; absent: there are none."""
