"""Checks requests for VIM records (api.md, chapter 8): every error names the field and what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import MASK, Secret, hide
from kubevnfm_sol.vim import short_vim_type

from kubevnfm_vim_registry.domain.record import JsonObject, VimType

Attributes = Mapping[str, object]
"""An object of a request, not checked yet."""

FILTERS: Final = ("id", "name", "type", "is_default", "status", "tenant_id", "description")
CHANGEABLE: Final = ("name", "description", "is_default", "vim_project", "auth_cred")
FIXED: Final = ("type", "auth_url")
_CREATABLE: Final = (*CHANGEABLE, *FIXED, "tenant_id", "extra")
_IGNORED: Final = ("id", "status", "placement_attr", "created_at", "updated_at")
"""Attributes that clients send back when they edit a record that they have read."""

_KUBERNETES_LOGINS: Final[Sequence[Sequence[str]]] = (
    ("bearer_token",),
    ("username", "password"),
    ("oidc_token_url", "username", "password", "client_id"),
    ("client_certificate", "client_key"),
)


def vim_type(vim: Attributes) -> VimType:
    """Return the ``type``, which may be in short or long form."""
    match short_vim_type(text(vim, "type")):
        case "openstack":
            return "openstack"
        case "kubernetes":
            return "kubernetes"
        case _:
            raise InvalidInput("vim.type", "openstack or kubernetes expected")


def check_names(vim: Attributes) -> None:
    """Raise InvalidInput for attributes that a new VIM does not have."""
    for name in vim:
        if name not in _CREATABLE and name not in _IGNORED:
            raise InvalidInput(f"vim.{name}", "no such attribute")


def text(holder: Attributes, name: str, *, field: str = "vim", default: str | None = None) -> str:
    """Return a text attribute, which is required unless there is a default."""
    value = holder.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or (not value and default is None):
        raise InvalidInput(f"{field}.{name}", "a text expected")
    if len(value) > 4096:
        raise InvalidInput(f"{field}.{name}", "at most 4096 characters expected")
    return value


def flag(vim: Attributes, name: str) -> bool:
    """Return a boolean attribute; False if it is missing."""
    # Some clients send booleans as text.
    value = vim.get(name, False)
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise InvalidInput(f"vim.{name}", "true or false expected")
    return value


def mapping(vim: Attributes, name: str) -> JsonObject:
    """Return an object attribute; empty if it is missing."""
    value = vim.get(name, {})
    if not isinstance(value, Mapping):
        raise InvalidInput(f"vim.{name}", "an object expected")
    return dict(value)


def auth_url(vim: Attributes, type: VimType) -> str:
    """Return the VIM's URL; Keystone's URL gets its version if it has none."""
    url = text(vim, "auth_url").rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise InvalidInput("vim.auth_url", "an http or https URL without credentials expected")
    if type == "openstack" and not url.rsplit("/", 1)[-1].startswith("v"):
        url += "/v3"
    return url


def auth_cred(vim: Attributes, type: VimType) -> JsonObject:
    """Return the access data with their secrets hidden. Raises InvalidInput naming a missing attribute."""
    credentials = merged_credentials({}, given_credentials(vim))
    check_credentials(credentials, type)
    return credentials


def given_credentials(vim: Attributes) -> JsonObject:
    """Return a request's access data with their secrets hidden; None removes a value."""
    given: JsonObject = {}
    for name, value in mapping(vim, "auth_cred").items():
        if value is not None and not isinstance(value, str | bool):
            raise InvalidInput(f"vim.auth_cred.{name}", "a text expected")
        # Tacker's clients send None as a text.
        given[name] = None if name == "ssl_ca_cert" and value in {"", "None"} else value
    hidden: JsonObject = hide(given)
    return hidden


def check_credentials(credentials: Attributes, type: VimType) -> None:
    """Raise InvalidInput for access data that do not suffice for any form of log-in."""
    if type == "openstack":
        for name in ("username", "password", "user_domain_name"):
            if not credentials.get(name):
                raise InvalidInput(f"vim.auth_cred.{name}", "required for an OpenStack VIM")
        if str(credentials.get("cert_verify", "True")) not in {"True", "False"}:
            raise InvalidInput("vim.auth_cred.cert_verify", '"True" or "False" expected')
    elif not any(all(credentials.get(name) for name in login) for login in _KUBERNETES_LOGINS):
        logins = "; or ".join(", ".join(login) for login in _KUBERNETES_LOGINS)
        raise InvalidInput("vim.auth_cred", f"one of these expected for a Kubernetes VIM: {logins}")


def vim_project(vim: Attributes, type: VimType) -> JsonObject:
    """Return the project (OpenStack) or default namespace (Kubernetes)."""
    project = mapping(vim, "vim_project")
    if type == "openstack":
        for name in ("name", "project_domain_name"):
            text(project, name, field="vim.vim_project")
    return project


def merged_credentials(old: Attributes, given: Attributes) -> JsonObject:
    """Return ``old`` changed by ``given``; a value of ``***`` changes nothing."""
    # Clients that edit a record send back the mask that we show.
    changes = {name: value for name, value in given.items() if not _is_mask(value)}
    # A new log-in replaces the old one completely: with both a token and a user name, it would be unclear which one
    # applies.
    logins = {name for login in _KUBERNETES_LOGINS for name in login}
    dropped = logins if changes.get("bearer_token") else {"bearer_token"} if changes.get("password") else set()
    merged = {name: value for name, value in old.items() if name not in dropped} | changes
    return {name: value for name, value in merged.items() if value is not None}


def _is_mask(value: object) -> bool:
    return value == MASK or (isinstance(value, Secret) and value == Secret(MASK))
