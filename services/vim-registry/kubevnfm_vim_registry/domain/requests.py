"""Checks requests for VIM records (api.md, chapter 8): every error names the field and what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import hide, is_mask
from kubevnfm_sol import access
from kubevnfm_sol.vim import short_vim_type

from kubevnfm_vim_registry.domain.providers import CAPI
from kubevnfm_vim_registry.domain.record import JsonObject, VimType

Attributes = Mapping[str, object]
"""An object of a request, not checked yet."""

OWNER: Final = "vnf_instance_id"
"""The filter by the VNF instance that a VIM belongs to."""
FILTERS: Final = ("id", "name", "type", "is_default", "status", "tenant_id", "description", OWNER)
CHANGEABLE: Final = ("name", "description", "is_default", "vim_project", "auth_cred", "extra")
"""``extra`` in its mark alone."""
FIXED: Final = ("type", "auth_url")
_CREATABLE: Final = (*CHANGEABLE, *FIXED, "tenant_id")

CREDENTIALS: Final[Mapping[VimType, Sequence[str]]] = {
    "openstack": (
        *("username", "user_id", "user_domain_name", "user_domain_id", "password"),
        *("application_credential_id", "application_credential_name", "application_credential_secret"),
        *("cert_verify", "cacert"),
    ),
    "kubernetes": (*access.KUBERNETES_ACCESS, "ssl_ca_cert"),
}
"""The attributes of ``auth_cred``; for OpenStack in the spelling of clouds.yaml."""
APPLICATION_CREDENTIAL: Final = "application_credential_secret"
OF_APPLICATION_CREDENTIALS: Final = (
    "application_credential_id",
    "application_credential_name",
    APPLICATION_CREDENTIAL,
)
PROJECT: Final = ("name", "id", "project_domain_name", "project_domain_id")
"""The attributes of ``vim_project`` of an OpenStack."""
CERT_VERIFY: Final = ("True", "False")
LONGEST_TEXT: Final = 4096


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
    access.check_names(vim, _CREATABLE, "vim", separator=".")


def text(holder: Attributes, name: str, *, field: str = "vim", default: str | None = None) -> str:
    """Return a text attribute, which is required unless there is a default."""
    value = holder.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or (not value and default is None):
        raise InvalidInput(f"{field}.{name}", "a text expected")
    if len(value) > LONGEST_TEXT:
        raise InvalidInput(f"{field}.{name}", f"at most {LONGEST_TEXT} characters expected")
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
    access.check_url(url, "vim.auth_url")
    if type == "openstack" and not url.rsplit("/", 1)[-1].startswith("v"):
        url += "/v3"
    return url


def extra_attributes(vim: Attributes, type: VimType) -> JsonObject:
    """Return ``extra``, which may have any attributes. Raises InvalidInput for a wrong value, and for what kubevnfm writes there."""
    given = mapping(vim, "extra")
    if CAPI in given:
        raise InvalidInput(f"vim.extra.{CAPI}", "kubevnfm itself shows it: leave it out")
    if type == "openstack":
        access.check_openstack_extra(given, "vim.extra", separator=".")
    return given


def marked_extra(vim: Attributes, present: Attributes) -> JsonObject:
    """Return the present ``extra`` with the mark of a change; null removes it. Raises InvalidInput for any other change."""
    given = mapping(vim, "extra")
    for name, value in given.items():
        if name != access.SITE_MARK and not is_mask(value) and present.get(name) != value:
            raise InvalidInput(f"vim.extra.{name}", f"cannot be changed; only {access.SITE_MARK} can")
    mark = given.get(access.SITE_MARK, present.get(access.SITE_MARK))
    others = {name: value for name, value in present.items() if name != access.SITE_MARK}
    if mark is None:
        return others
    return {**others, access.SITE_MARK: text({access.SITE_MARK: mark}, access.SITE_MARK, field="vim.extra")}


def auth_cred(vim: Attributes, type: VimType) -> JsonObject:
    """Return the access data with their secrets hidden. Raises InvalidInput naming a missing attribute."""
    credentials = merged_credentials({}, given_credentials(vim, type))
    check_credentials(credentials, type, auth_url(vim, type))
    return credentials


def given_credentials(vim: Attributes, type: VimType) -> JsonObject:
    """Return a request's access data with their secrets hidden; None removes a value."""
    given: JsonObject = {}
    access.check_names(mapping(vim, "auth_cred"), CREDENTIALS[type], "vim.auth_cred", separator=".")
    for name, value in mapping(vim, "auth_cred").items():
        if value is not None and not isinstance(value, str | bool):
            raise InvalidInput(f"vim.auth_cred.{name}", "a text expected")
        given[name] = value
    hidden: JsonObject = hide(given)
    return hidden


def check_credentials(credentials: Attributes, type: VimType, url: str) -> None:
    """Raise InvalidInput for access data that do not suffice for any form of log-in, or for a Kubernetes API without a CA.

    ``url``: the VIM's `auth_url`.
    """
    if type == "openstack":
        _check_openstack_credentials(credentials)
    else:
        access.check_kubernetes_login(credentials, "vim.auth_cred")
        access.check_cluster_ca(credentials.get("ssl_ca_cert"), url, "vim.auth_cred.ssl_ca_cert")


def _check_openstack_credentials(credentials: Attributes) -> None:
    uses_credential = any(credentials.get(name) for name in OF_APPLICATION_CREDENTIALS)
    if uses_credential and credentials.get("password"):
        raise InvalidInput(
            "vim.auth_cred.password", "either a password or an application credential expected, not both"
        )
    _require_one(credentials, (APPLICATION_CREDENTIAL if uses_credential else "password",))
    if uses_credential:
        _require_one(credentials, ("application_credential_id", "application_credential_name"))
    if not credentials.get("application_credential_id") and not credentials.get("user_id"):
        _require_one(credentials, ("username", "user_id"))
        _require_one(credentials, ("user_domain_name", "user_domain_id"))
    if str(credentials.get("cert_verify", "True")) not in CERT_VERIFY:
        raise InvalidInput("vim.auth_cred.cert_verify", '"True" or "False" expected')
    if credentials.get("cacert"):
        access.check_certificates(access.pem(credentials["cacert"]), "vim.auth_cred.cacert")


def _require_one(holder: Attributes, names: Sequence[str], field: str = "vim.auth_cred") -> None:
    access.check_one_of(holder, names, field, separator=".")


def vim_project(vim: Attributes, type: VimType, credentials: Attributes) -> JsonObject:
    """Return the project (OpenStack) or default namespace (Kubernetes).

    An application credential belongs to a project, so beside one the project may be missing.
    """
    project = mapping(vim, "vim_project")
    if type == "kubernetes":
        text(project, "name", field="vim.vim_project", default="")
        return project
    access.check_names(project, PROJECT, "vim.vim_project", separator=".")
    for name in project:
        text(project, name, field="vim.vim_project", default="")
    if not credentials.get(APPLICATION_CREDENTIAL) and not project.get("id"):
        _require_one(project, ("name", "id"), "vim.vim_project")
        _require_one(project, ("project_domain_name", "project_domain_id"), "vim.vim_project")
    return project


def merged_credentials(old: Attributes, given: Attributes) -> JsonObject:
    """Return ``old`` changed by ``given``; a value of ``***`` changes nothing."""
    # Clients that edit a record send back the mask that we show.
    changes = {name: value for name, value in given.items() if not is_mask(value)}
    # A new log-in replaces the old one completely: with both a token and a user name, it would be unclear which one
    # applies.
    dropped: set[str] = set()
    if changes.get("bearer_token"):
        dropped = {name for login in access.KUBERNETES_LOGINS for name in login}
    elif changes.get("password"):
        dropped = {"bearer_token", *OF_APPLICATION_CREDENTIALS}
    elif changes.get(APPLICATION_CREDENTIAL):
        dropped = {"password"}
    merged = {name: value for name, value in old.items() if name not in dropped} | changes
    return {name: value for name, value in merged.items() if value is not None}
