"""The record of one VIM: stored, shown to clients (Tacker's form, api.md 8), and converted to a connection."""

from __future__ import annotations

from typing import Any, Final, Literal

from kubevnfm_clients.cluster_access import PROXY_URL, SERVICE_ACCOUNT
from kubevnfm_events import CapiProviders, VimConnection
from kubevnfm_events.vim import VimStatus
from kubevnfm_kit.cluster_trust import NOT_VERIFIED, SYSTEM_CAS
from kubevnfm_secrets import KeyRing, Secret, SecretParams, hide, mask, sealing
from kubevnfm_sol.access import KUBERNETES_ACCESS, SITE_MARK, unread_extra
from kubevnfm_sol.vim import KUBERNETES, OPENSTACK
from pydantic import BaseModel, ConfigDict, Field, model_validator

from kubevnfm_vim_registry.domain.providers import CAPI, shown_providers
from kubevnfm_vim_registry.domain.region import RegionFacts

VimType = Literal["openstack", "kubernetes"]

JsonObject = dict[str, Any]
"""An object of a request or record. Clients and VIMs decide its content, so each use checks the type of a value."""

_LONG_TYPE: Final[dict[VimType, str]] = {"openstack": OPENSTACK, "kubernetes": KUBERNETES}
_INTERNAL: Final = {
    *("owner", "default_of", "cluster_uid", "credentials_id", "content_sha256", "kubernetes_version"),
    *("expiry_reported_days", "capi_providers", "awaited_cluster", "former_cluster_uid", "region", "status_since"),
}
"""Stored attributes that Tacker's record does not have, so they are not shown."""
_OPENSTACK_ATTRIBUTES: Final = {
    "username": ("auth_cred", "username"),
    "userId": ("auth_cred", "user_id"),
    "password": ("auth_cred", "password"),
    "userDomain": ("auth_cred", "user_domain_name"),
    "userDomainId": ("auth_cred", "user_domain_id"),
    "project": ("vim_project", "name"),
    "projectId": ("vim_project", "id"),
    "projectDomain": ("vim_project", "project_domain_name"),
    "projectDomainId": ("vim_project", "project_domain_id"),
    "applicationCredentialId": ("auth_cred", "application_credential_id"),
    "applicationCredentialName": ("auth_cred", "application_credential_name"),
    "applicationCredentialSecret": ("auth_cred", "application_credential_secret"),
}
"""Where the record has the attributes of an OpenStack's accessInfo."""
_TRUST_ATTRIBUTES: Final = {
    "ssl_ca_cert": "ssl_ca_cert",
    "trustedCertificates": "cacert",
    "skipCertificateVerification": "cert_verify",
}
"""The attributes of ``auth_cred`` that say how certificates are verified, by those of interfaceInfo."""


class VimRecord(BaseModel):
    """A registered VIM."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    id: str
    name: str
    description: str = ""
    tenant_id: str
    type: VimType
    status: VimStatus = "PENDING"
    is_default: bool = False
    placement_attr: dict[str, list[str]] = Field(default_factory=dict)
    """``regions``: OpenStack's regions, or the cluster's namespaces."""
    auth_url: str
    auth_cred: SecretParams = Field(default_factory=dict)
    vim_project: JsonObject = Field(default_factory=dict)
    extra: SecretParams = Field(default_factory=dict)
    created_at: str
    updated_at: str
    owner: str | None = None
    """The VNF instance that built the cluster; None if an operator registered the VIM."""
    default_of: str | None = None
    """The tenant, set only on its default VIM. A unique index on it prevents a second default."""
    cluster_uid: str | None = None
    credentials_id: str | None = None
    awaited_cluster: str | None = None
    """The name of the workload cluster that takes the VIM over: the one that it was is built again."""
    former_cluster_uid: str | None = None
    """The one that it was, while another is awaited."""
    content_sha256: str = ""
    """Hash of the kubeconfig that was called back, from which the access data are."""
    kubernetes_version: str = ""
    expiry_reported_days: int | None = None
    """The threshold of `domain.expiry` that was published last, for the present access data."""
    capi_providers: dict[str, CapiProviders] = Field(default_factory=dict)
    """The providers of Cluster API in the cluster, by the VNF instance that has installed them; shown in ``extra``."""
    region: RegionFacts | None = None
    """Its key and facts as a cloud region of the multi-cloud API; None: it is not one."""
    status_reason: str = ""
    """The reason why it is UNREACHABLE or in ERROR; shown to clients while there is one."""
    status_since: str = ""
    """When it got the status; empty: since it was registered, or an earlier version has not stored it."""

    @model_validator(mode="before")
    @classmethod
    def _with_ca(cls, values: JsonObject) -> JsonObject:
        """Write out what a record without a CA meant before CR-007: an operator's was not verified."""
        credentials = values.get("auth_cred") or {}
        if values.get("type") != "kubernetes" or credentials.get("ssl_ca_cert"):
            return values
        ca = NOT_VERIFIED if values.get("owner") is None else SYSTEM_CAS
        return {**values, "auth_cred": {**credentials, "ssl_ca_cert": ca}}

    @property
    def is_tls_unverified(self) -> bool:
        """Whether the certificate of a Kubernetes API is not verified."""
        return self.type == "kubernetes" and self.auth_cred.get("ssl_ca_cert") == NOT_VERIFIED

    def document(self, ring: KeyRing) -> JsonObject:
        """Return the JSON object for the store; secrets are encrypted."""
        return self.model_dump(mode="json", exclude={"id"}, exclude_none=True, context=sealing(ring))

    def shown(self) -> JsonObject:
        """Return the record as clients see it; every secret is ``***``."""
        record: JsonObject = mask(self.model_dump(exclude=_INTERNAL))
        if not self.status_reason:
            del record["status_reason"]  # Tacker's record does not have it
        warnings = unread_extra(self.type, self.extra, ["extra"], separator=".", also=[SITE_MARK])
        if warnings:
            record["warnings"] = [each.text for each in warnings]
        if self.capi_providers:
            record["extra"] = {**record["extra"], CAPI: shown_providers(self.capi_providers.values())}
        return record

    def with_capi_providers(self, vnf_instance_id: str, providers: CapiProviders | None) -> VimRecord:
        """Return the record with what a VNF has installed in the cluster now; None: nothing."""
        others = {name: each for name, each in self.capi_providers.items() if name != vnf_instance_id}
        mine = {} if providers is None else {vnf_instance_id: providers}
        return self.model_copy(update={"capi_providers": {**others, **mine}})

    def is_registered_with(self, content_sha256: str, name: str) -> bool:
        """Return whether a registration with this kubeconfig and name would change nothing."""
        return self.status == "ACTIVE" and (self.content_sha256, self.name) == (content_sha256, name)

    @property
    def connection(self) -> VimConnection:
        """The VIM's access data as SOL003 VimConnectionInfo."""
        parts = _openstack_parts(self) if self.type == "openstack" else _kubernetes_parts(self)
        interface, access = parts
        extra = {name: value for name, value in self.extra.items() if name != SITE_MARK}
        if self.type == "kubernetes":
            extra["namespace"] = self.vim_project.get("name") or "default"
        return VimConnection(
            vim_id=self.id,
            vim_type=_LONG_TYPE[self.type],
            interface_info=interface,
            access_info=access,
            extra=extra,
            of_vnf=self.owner is not None,
        )


def _openstack_parts(vim: VimRecord) -> tuple[dict[str, object], JsonObject]:
    credentials, regions = vim.auth_cred, vim.placement_attr.get("regions")
    holders = {"auth_cred": credentials, "vim_project": vim.vim_project}
    access = {name: holders[holder].get(attribute) for name, (holder, attribute) in _OPENSTACK_ATTRIBUTES.items()}
    # The first is the default: it was chosen at the registration, and a later one must not lose the stacks there.
    access["region"] = vim.extra.get("region") or (regions[0] if regions else None)
    interface: dict[str, object] = {"endpoint": vim.auth_url}
    if credentials.get("cacert"):
        interface["trustedCertificates"] = credentials["cacert"]
    if str(credentials.get("cert_verify", "True")).lower() == "false":
        interface["skipCertificateVerification"] = True
    return interface, {name: value for name, value in access.items() if value is not None}


def _kubernetes_parts(vim: VimRecord) -> tuple[dict[str, object], JsonObject]:
    credentials = vim.auth_cred
    interface: dict[str, object] = {"endpoint": vim.auth_url}
    if vim.is_tls_unverified:
        interface["skipTlsVerify"] = True
    elif credentials.get("ssl_ca_cert"):
        interface["ssl_ca_cert"] = credentials["ssl_ca_cert"]
    access = {name: credentials[name] for name in KUBERNETES_ACCESS if credentials.get(name) is not None}
    if vim.region is not None and vim.region.token_request is not None:
        access[SERVICE_ACCOUNT] = vim.region.token_request.model_dump(mode="json")
    if vim.region is not None and vim.region.proxy_url is not None:
        access[PROXY_URL] = vim.region.proxy_url
    return interface, access


def field_of(place: str) -> str:
    """Return the attribute of a request for a VIM that a place of its connection comes from: ``vim.auth_cred.password``."""
    part, _, name = place.partition("/")
    if part == "interfaceInfo":
        return f"vim.auth_cred.{_TRUST_ATTRIBUTES[name]}" if name in _TRUST_ATTRIBUTES else "vim.auth_url"
    holder, attribute = _OPENSTACK_ATTRIBUTES.get(name, ("auth_cred", name))
    return f"vim.{holder}.{attribute}" if part == "accessInfo" else f"vim.{place.replace('/', '.')}"


def auth_cred_of(connection: VimConnection) -> JsonObject:
    """Return the ``auth_cred`` of a Kubernetes VIM with this connection."""
    credentials: JsonObject = hide(
        {name: connection.access_info[name] for name in KUBERNETES_ACCESS if name in connection.access_info}
    )
    ca = connection.interface_info.get("ssl_ca_cert")
    if isinstance(ca, Secret | str):
        credentials["ssl_ca_cert"] = ca
    return credentials
