"""The types of the VIM API, of versions and of health; only the document uses them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.problem import InvalidParam
from pydantic import Field

from kubevnfm_lcm_api.http.models import Shown


class LinkToSelf(Shown):
    """The list of versions has its links in the form of OpenStack."""

    rel: str
    href: str


class ServedVersion(Shown):
    """One version of the VIM API."""

    id: str
    status: str
    links: list[LinkToSelf]


class ServedVersions(Shown):
    """The versions that clients of the VIM API read first."""

    versions: list[ServedVersion]


class ApiVersion(Shown):
    """One version that can be asked for in ``Version``."""

    version: str
    isDeprecated: bool  # noqa: N815  # as it is on the wire


class ApiVersionInformation(Shown):
    """SOL013 clause 9.3."""

    uriPrefix: str  # noqa: N815  # as it is on the wire
    apiVersions: list[ApiVersion]  # noqa: N815  # as it is on the wire


class Vim(Shown):
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
    warnings: list[str] | None = None
    """Attributes of ``extra`` that kubevnfm does not read."""
    created_at: str
    updated_at: str


class VimAnswer(Shown):
    """One VIM; fewer attributes if ``fields`` selects some."""

    vim: JsonObject


class VimCreated(Shown):
    """The VIM as it is registered."""

    vim: Vim


class VimsAnswer(Shown):
    """VIMs; fewer attributes of each if ``fields`` selects some."""

    vims: list[JsonObject]


class VimWanted(Shown):
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
    these with oidc_token_url and client_id, or client_id and client_secret; ssl_ca_cert (PEM, ``system`` or ``None``)."""
    vim_project: dict[str, str] = Field(default_factory=dict)
    """OpenStack: name and project_domain_name. Kubernetes: name, the default namespace."""
    extra: JsonObject = Field(default_factory=dict)


class CreateVim(Shown):
    """VIMs are wrapped."""

    vim: VimWanted


class VimChange(Shown):
    """The changeable attributes of a VIM; not ``vim_project`` while instances use it."""

    name: str | None = None
    description: str | None = None
    is_default: bool | Literal["True", "False"] | None = None
    auth_cred: dict[str, str] | None = None
    vim_project: dict[str, str] | None = None
    extra: JsonObject | None = None
    """``kubevnfm_site`` alone, the mark of a site file; null removes it."""


class UpdateVim(Shown):
    """Changes are wrapped too."""

    vim: VimChange


class TackerErrorDetails(Shown):
    """An error in the form of Tacker's clients."""

    type: str
    message: str
    detail: str


class TackerError(Shown):
    """The errors of the VIM API."""

    error: TackerErrorDetails = Field(alias="TackerError")
    invalid_params: list[InvalidParam] | None = Field(None, alias="invalidParams")
    """The attributes that are wrong."""


class ParkedCommand(Shown):
    """A command whose handling has ended the process again and again (`handler-ended-process` in docs/errors.md)."""

    service: str
    command: str
    """Its type."""
    operationId: str  # noqa: N815  # as it is on the wire
    parkedAt: datetime  # noqa: N815  # as it is on the wire


class PartShown(Shown):
    """A part that the process needs, or another service."""

    part: str
    """``store``, ``broker``, ``disk``, ``sandbox``, ``parked-commands``, ``certificates``, or the name of a service."""
    state: Literal["ready", "degraded", "failed", "unknown"]
    """``degraded``: some of the work is not done; ``failed``: none that needs the part; ``unknown``: nothing is known of it yet."""
    since: datetime
    """Since when, as this process has seen it."""
    text: str | None = None
    """Why it is not ready."""


class Health(Shown):
    """Whether the process lives, or is ready to serve."""

    status: str
    """``live``; ``ready``, ``degraded`` (it serves, and a part is not ready) or ``not ready``."""
    parts: list[PartShown] | None = None
    """The parts that it needs (docs/health.md)."""
    packageCode: str | None = None  # noqa: N815  # as it is on the wire
    """How the service runs code of packages, if it does: ``confined``, ``trusted`` or ``refused`` (docs/security.md)."""
    parkedCommands: list[ParkedCommand] | None = None  # noqa: N815  # as it is on the wire
    """The commands of the last day that the service does not handle any more; absent: there are none."""
