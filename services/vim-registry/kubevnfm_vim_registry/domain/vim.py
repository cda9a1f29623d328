"""A VIM: its record in the form of existing clients (api.md chapter 8), and the connection that services use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import KeyRing, SecretParams, hide, mask, sealing
from pydantic import BaseModel, ConfigDict, Field

COLLECTION: Final = "vims"
OPENSTACK_TYPE: Final = "ETSINFV.OPENSTACK_KEYSTONE.V_3"
KUBERNETES_TYPE: Final = "ETSINFV.KUBERNETES.V_1"
DEFAULT_TENANT: Final = "default"

Kind = Literal["openstack", "kubernetes"]
Status = Literal["PENDING", "ACTIVE", "UNREACHABLE", "ERROR"]

_KUBERNETES_ACCESS: Final = (
    "bearer_token", "username", "password", "client_certificate", "client_key", "oidc_token_url", "client_id",
    "client_secret", "ssl_ca_cert_hash", "certificate_key",
)  # fmt: skip


class Vim(BaseModel):
    """The stored record."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    id: str
    name: str
    description: str = ""
    tenant_id: str = DEFAULT_TENANT
    type: Kind
    status: Status = "PENDING"
    status_reason: str = ""
    is_default: bool = False
    auth_url: str
    auth_cred: SecretParams = Field(default_factory=dict)
    vim_project: dict[str, Any] = Field(default_factory=dict)
    placement_attr: dict[str, Any] = Field(default_factory=dict)
    extra: SecretParams = Field(default_factory=dict)
    created_at: str = ""
    updated_at: str = ""
    owner: str | None = None
    """The VNF instance whose cluster it is."""
    kubernetes_version: str = ""

    def document(self, ring: KeyRing) -> dict[str, Any]:
        """Return the body for the store, secrets sealed; ``default_of`` is there for the default alone (unique)."""
        body = self.model_dump(mode="json", context=sealing(ring))
        if self.is_default:
            body["default_of"] = self.tenant_id
        return body

    def view(self) -> dict[str, Any]:
        """Return the record as it is shown: every secret as ``***``."""
        shown = self.model_dump(mode="json", exclude={"owner", "kubernetes_version", "status_reason"})
        shown["auth_cred"] = mask(self.auth_cred)
        shown["extra"] = mask(self.extra)
        if self.status_reason:
            shown["status_reason"] = self.status_reason
        return shown

    def connection(self) -> VimConnection:
        """Return what other services reach the VIM with (SOL003 VimConnectionInfo)."""
        if self.type == "openstack":
            return _openstack_connection(self)
        interface: dict[str, object] = {"endpoint": self.auth_url}
        ca = self.auth_cred.get("ssl_ca_cert")
        if isinstance(ca, str) and ca not in {"", "None"}:
            interface["ssl_ca_cert"] = ca
        access = {name: self.auth_cred[name] for name in _KUBERNETES_ACCESS if self.auth_cred.get(name) is not None}
        extra = {**self.extra, "namespace": self.vim_project.get("name") or "default"}
        return VimConnection(
            vim_id=self.id, vim_type=KUBERNETES_TYPE, interface_info=interface, access_info=access, extra=extra
        )


def _openstack_connection(vim: Vim) -> VimConnection:
    cred, project = vim.auth_cred, vim.vim_project
    regions = vim.placement_attr.get("regions") or []
    access: dict[str, Any] = {
        "username": cred.get("username"),
        "password": cred.get("password"),
        "project": project.get("name"),
        "projectDomain": project.get("project_domain_name"),
        "userDomain": cred.get("user_domain_name"),
        "region": regions[0] if regions else None,
    }
    verify = str(cred.get("cert_verify", "True")).lower() != "false"
    return VimConnection(
        vim_id=vim.id,
        vim_type=OPENSTACK_TYPE,
        interface_info={"endpoint": vim.auth_url, "skipCertificateVerification": not verify},
        access_info={name: value for name, value in access.items() if value is not None},
        extra=vim.extra,
    )


def checked(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a new VIM, secrets hidden. Raises InvalidInput naming what is missing or wrong."""
    hidden = hide(dict(request))
    kind = hidden.get("type")
    if kind not in {"openstack", "kubernetes"}:
        raise InvalidInput("vim/type", "openstack or kubernetes expected")
    name = hidden.get("name")
    if name is not None and not isinstance(name, str):
        raise InvalidInput("vim/name", "a text expected")
    url = _url(hidden.get("auth_url"), kind)
    cred, project = _object(hidden, "auth_cred"), _object(hidden, "vim_project")
    check_credentials(kind, cred, project)
    return {
        "name": name or "",
        "description": str(hidden.get("description") or ""),
        "tenant_id": str(hidden.get("tenant_id") or DEFAULT_TENANT),
        "type": kind,
        "is_default": read_flag(hidden.get("is_default", False)),
        "auth_url": url,
        "auth_cred": cred,
        "vim_project": project,
        "extra": hidden.get("extra") if isinstance(hidden.get("extra"), Mapping) else {},
    }


def check_credentials(kind: str, cred: Mapping[str, Any], project: Mapping[str, Any]) -> None:
    """Raise InvalidInput when access data of the kind is incomplete (api.md 8; SEQ-031)."""
    if kind == "openstack":
        for place, of, name in (
            ("vim_project", project, "name"),
            ("vim_project", project, "project_domain_name"),
            ("auth_cred", cred, "username"),
            ("auth_cred", cred, "password"),
            ("auth_cred", cred, "user_domain_name"),
        ):
            if not of.get(name):
                raise InvalidInput(f"vim/{place}/{name}", "required for an OpenStack VIM")
        return
    has_token = bool(cred.get("bearer_token"))
    has_password = bool(cred.get("username")) and bool(cred.get("password"))
    has_certificate = bool(cred.get("client_certificate")) and bool(cred.get("client_key"))
    if not (has_token or has_password or has_certificate):
        raise InvalidInput(
            "vim/auth_cred", "bearer_token, or username and password, or client_certificate and client_key expected"
        )


def read_flag(value: Any) -> bool:
    """Read a boolean that clients also send as ``"True"`` or ``"False"``. Raises InvalidInput."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise InvalidInput("vim/is_default", "true or false expected")


def _object(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = body.get(name) or {}
    if not isinstance(value, Mapping):
        raise InvalidInput(f"vim/{name}", "an object expected")
    return dict(value)


def _url(url: Any, kind: str) -> str:
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInput("vim/auth_url", "an http or https URL expected")
    text = str(url).rstrip("/")
    if kind == "openstack" and not text.rsplit("/", 1)[-1].startswith("v"):
        text += "/v3"
    return text
