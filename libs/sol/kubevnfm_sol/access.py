"""The meaning of the attributes of a VimConnectionInfo, by VIM type (api.md 3.2). Anything else is refused by name, in ``extra`` warned of.

The functions check one connection: they never open a secret, so a request is checked with its secrets hidden.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from kubevnfm_kit.cluster_trust import NOT_VERIFIED, SYSTEM_CAS
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.nearest import no_such, shown
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_secrets import MASK, Secret, is_mask

from kubevnfm_sol.free_containers import unread
from kubevnfm_sol.vim import CREATED_BY, KUBERNETES, OPENSTACK, long_vim_type

Values = Mapping[str, object]
"""KeyValuePairs of a connection; secrets in clear or hidden."""

INTERFACES: Final = ("public", "internal", "admin")
"""The interfaces of a service in Keystone's catalogue, in OpenStack's spelling."""

_OPENSTACK_ACCESS: Final[Mapping[str, Sequence[str]]] = {
    "username": ("username", "user_name"),
    "userId": ("userId", "user_id"),
    "password": ("password",),
    # `tenant` is the name of Keystone v2, which Tacker's v1 requests use.
    "project": ("project", "project_name", "projectName", "tenant", "tenant_name"),
    "projectId": ("projectId", "project_id", "tenant_id"),
    "projectDomain": ("projectDomain", "project_domain", "project_domain_name", "projectDomainName"),
    "projectDomainId": ("projectDomainId", "project_domain_id"),
    "userDomain": ("userDomain", "user_domain", "user_domain_name", "userDomainName"),
    "userDomainId": ("userDomainId", "user_domain_id"),
    "applicationCredentialId": ("applicationCredentialId", "application_credential_id"),
    "applicationCredentialName": ("applicationCredentialName", "application_credential_name"),
    "applicationCredentialSecret": ("applicationCredentialSecret", "application_credential_secret"),
    "region": ("region", "region_name"),
    "endpoint": ("auth_url", "authUrl"),
}
"""SOL003's registered names first, then those of clouds.yaml and of other VIM configuration files."""
KUBERNETES_ACCESS: Final = (
    *("bearer_token", "username", "password", "oidc_token_url", "client_id", "client_secret", "oidc_scope"),
    *("client_certificate", "client_key"),
    # Added by our own cluster driver: nodes join with them.
    *("ssl_ca_cert_hash", "certificate_key"),
)
"""The access data of a Kubernetes API, without its CA (``ssl_ca_cert``)."""
_ACCESS: Final[Mapping[str, Sequence[str]]] = {
    OPENSTACK: [spelling for spellings in _OPENSTACK_ACCESS.values() for spelling in spellings],
    KUBERNETES: (*KUBERNETES_ACCESS, "ssl_ca_cert", "auth_url", "authUrl"),
}
_INTERFACE_INFO: Final[Mapping[str, Sequence[str]]] = {
    OPENSTACK: ("endpoint", "skipCertificateHostnameCheck", "skipCertificateVerification", "trustedCertificates"),
    KUBERNETES: ("endpoint", "ssl_ca_cert", "skipTlsVerify"),
}
SITE_MARK: Final = "kubevnfm_site"
"""The attribute in which the command line writes whose site a thing belongs to: of ``extra`` of a registered VIM, of ``metadata``, or of
``userDefinedData`` of a package."""
EXTRA: Final[Mapping[str, Sequence[str]]] = {
    OPENSTACK: ("region", "interface"),
    KUBERNETES: (
        *("namespace", "use_helm", "helm_info"),
        # Shown in a connection of a cluster of ours, so that it can be sent back.
        *("vnf_instance_id", "cluster", CREATED_BY, "ssl_ca_cert_hash", "management_vim_id"),
    ),
}
"""The attributes of ``extra`` that are read, of a connection and of a VIM that is registered; it may have any others. The mark of a
site file is one of the registered VIM alone."""

_NO_URL: Final = re.compile(r"[\x00-\x20\x7f]")
"""Characters that no URL has."""

KUBERNETES_LOGINS: Final[Sequence[Sequence[str]]] = (
    ("bearer_token",),
    ("username", "password"),
    ("oidc_token_url", "username", "password", "client_id"),
    ("oidc_token_url", "client_id", "client_secret"),
    ("client_certificate", "client_key"),
)
"""Each is a set of attributes that suffices to log in to a Kubernetes API."""


class Connection(Protocol):
    """A VimConnectionInfo, of a request or of a message."""

    @property
    def vim_type(self) -> str: ...
    @property
    def interface_info(self) -> Values: ...
    @property
    def access_info(self) -> Values: ...
    @property
    def extra(self) -> Values: ...


def check_understood(connection: Connection, place: str) -> None:
    """Raise InvalidInput for an attribute that is not understood, or whose value has a wrong form.

    ``place``: the connection's place in the input, with which the error's ``field`` begins.
    """
    kind = long_vim_type(connection.vim_type)
    for part, given, known in (
        ("interfaceInfo", connection.interface_info, _INTERFACE_INFO[kind]),
        ("accessInfo", connection.access_info, _ACCESS[kind]),
    ):
        check_names(given, known, f"{place}/{part}")
    for name, value in connection.access_info.items():
        if not isinstance(value, str | Secret):
            raise InvalidInput(f"{place}/accessInfo/{name}", "a text expected")
        if is_mask(value):
            raise InvalidInput(f"{place}/accessInfo/{name}", f"the value itself expected, not {MASK}")
    if kind == OPENSTACK:
        check_openstack_extra(connection.extra, f"{place}/extra")
        certificates = connection.interface_info.get("trustedCertificates")
        if certificates is not None:
            check_certificates(pem(certificates), f"{place}/interfaceInfo/trustedCertificates")
    address = endpoint(connection)
    if address is not None:
        check_url(address, f"{place}/interfaceInfo/endpoint")
        if kind == KUBERNETES and is_kubernetes_login(connection.access_info):
            _check_trust(connection, address, place)


def _check_trust(connection: Connection, address: str, place: str) -> None:
    """Raise InvalidInput if a log-in to a Kubernetes API does not say which certificate to trust."""
    ca = connection.interface_info.get("ssl_ca_cert") or connection.access_info.get("ssl_ca_cert")
    if ca or connection.interface_info.get("skipTlsVerify") is not True:
        check_cluster_ca(ca, address, f"{place}/interfaceInfo/ssl_ca_cert")


def check_names(given: Values, known: Sequence[str], place: str, *, separator: str = "/") -> None:
    """Raise InvalidInput for the first name that is not known."""
    for name in given:
        if name not in known:
            raise InvalidInput(f"{place}{separator}{shown(name)}", no_such(name, known))


def unread_extra(
    vim_type: str, extra: Values, path: Sequence[str | int], *, separator: str = "/", also: Sequence[str] = ()
) -> Sequence[RequestWarning]:
    """Return a warning for each attribute of ``extra`` that kubevnfm does not read; ``path``, ``separator``: as of `unread`.

    ``also``: attributes that are read in addition to those of a connection.
    """
    readers = "kubevnfm reads no attribute"
    return unread(extra, (*EXTRA[long_vim_type(vim_type)], *also), path, readers, separator=separator)


def check_openstack_extra(extra: Values, place: str, *, separator: str = "/") -> None:
    """Raise InvalidInput for a value of an OpenStack's ``extra`` that has a wrong form."""
    if extra.get("interface") not in (None, *INTERFACES):
        raise InvalidInput(f"{place}{separator}interface", f"one of {', '.join(INTERFACES)} expected")
    region = extra.get("region")
    if region is not None and (not isinstance(region, str) or not region):
        raise InvalidInput(f"{place}{separator}region", "the name of a region expected")


def check_url(url: object, place: str) -> None:
    """Raise InvalidInput unless it is an http or https URL without credentials."""
    try:
        parts = urlsplit(str(url))
        # `port` raises ValueError if it is not a number from 0 to 65535. urlsplit leaves out line breaks and tabs.
        is_url = (
            parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None and parts.port != 0
        )
        is_url = is_url and not _NO_URL.search(str(url))
        # UnicodeError, a ValueError, for a name with an empty or a long part: later code would raise it for each connection.
        (parts.hostname or "").encode("idna")
    except ValueError:
        is_url = False
    if not is_url:
        raise InvalidInput(place, "an http or https URL without credentials expected")


def check_certificates(certificates: str, place: str) -> None:
    """Raise InvalidInput unless the text holds certificates in PEM form."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidInput(place, "certificates in PEM form expected") from error


def check_cluster_ca(ca: object, address: str, place: str) -> None:
    """Raise InvalidInput unless ``ca`` says how to verify the certificate of the API server at ``address`` (CR-007)."""
    if ca in (NOT_VERIFIED, SYSTEM_CAS) or (not ca and urlsplit(address).scheme == "http"):
        return
    if not ca:
        raise InvalidInput(
            place,
            f'the CA of the Kubernetes API as PEM expected; "{SYSTEM_CAS}" trusts the CAs of the system,'
            f' "{NOT_VERIFIED}" leaves the certificate unverified',
        )
    check_certificates(pem(ca), place)


def pem(certificates: object) -> str:
    """Return ``trustedCertificates`` as one text; in requests line ends are often the two characters ``\\n``."""
    parts = certificates if isinstance(certificates, list | tuple) else (certificates,)
    return "\n".join(str(part).replace("\\n", "\n") for part in parts)


def openstack_access(access: Values) -> dict[str, object]:
    """Return the attributes of an OpenStack's accessInfo under SOL003's names, or ours where it has none."""
    found: dict[str, object] = {}
    for name, spellings in _OPENSTACK_ACCESS.items():
        value = next((access[spelling] for spelling in spellings if access.get(spelling)), None)
        if value is not None:
            found[name] = value
    return found


def endpoint(connection: Connection) -> str | None:
    """Return the address of Keystone or of the Kubernetes API; None if the connection has none."""
    address = connection.interface_info.get("endpoint") or next(
        (connection.access_info[name] for name in ("auth_url", "authUrl") if connection.access_info.get(name)), None
    )
    return str(address) if address else None


def region_of(connection: Connection) -> str | None:
    """Return the region that an OpenStack connection names."""
    region = openstack_access(connection.access_info).get("region") or connection.extra.get("region")
    return str(region) if region else None


def check_login(connection: Connection, place: str) -> None:
    """Raise InvalidInput that names the first attribute which the connection lacks for a log-in of its own."""
    if endpoint(connection) is None:
        raise InvalidInput(f"{place}/interfaceInfo/endpoint", "required together with accessInfo")
    if long_vim_type(connection.vim_type) == KUBERNETES:
        check_kubernetes_login(connection.access_info, f"{place}/accessInfo")
    else:
        check_openstack_login(openstack_access(connection.access_info), f"{place}/accessInfo")


def check_openstack_login(access: Values, place: str) -> None:
    """Raise InvalidInput unless ``access``, as `openstack_access` returns it, is one complete log-in to Keystone."""
    uses_credential = any(name.startswith("applicationCredential") for name in access)
    if uses_credential and access.get("password"):
        raise InvalidInput(f"{place}/password", "either a password or an application credential expected, not both")
    if not uses_credential or "applicationCredentialId" not in access:
        check_one_of(access, ("username", "userId"), place)
    if uses_credential:
        check_one_of(access, ("applicationCredentialId", "applicationCredentialName"), place)
        check_one_of(access, ("applicationCredentialSecret",), place)
    else:
        check_one_of(access, ("password",), place)
        check_one_of(access, ("project", "projectId"), place)


def check_one_of(given: Values, names: Sequence[str], place: str, *, separator: str = "/") -> None:
    """Raise InvalidInput unless one of the attributes, which an OpenStack VIM needs, has a value."""
    if not any(given.get(name) for name in names):
        alternative = f" ({' or '.join(names)})" if len(names) > 1 else ""
        raise InvalidInput(f"{place}{separator}{names[0]}", f"required for an OpenStack VIM{alternative}")


def is_kubernetes_login(access: Values) -> bool:
    """Return whether the access data suffice to log in to a Kubernetes API."""
    return any(all(access.get(name) for name in login) for login in KUBERNETES_LOGINS)


def check_kubernetes_login(access: Values, place: str) -> None:
    """Raise InvalidInput unless the access data suffice to log in to a Kubernetes API."""
    if not is_kubernetes_login(access):
        logins = "; or ".join(", ".join(login) for login in KUBERNETES_LOGINS)
        raise InvalidInput(place, f"one of these expected for a Kubernetes VIM: {logins}")
