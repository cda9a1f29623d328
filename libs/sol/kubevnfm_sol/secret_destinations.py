"""Where the secrets of a VimConnectionInfo go: the server, how it is verified, and the account, by VIM type.

A stored secret is only for the destination that it was given for. Otherwise a caller who does not know a password could have it sent
to a server of their own, by a change of the endpoint beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.cluster_trust import cluster_trust
from kubevnfm_secrets import Secret

from kubevnfm_sol.access import Connection, endpoint, openstack_access, pem
from kubevnfm_sol.vim import KUBERNETES, OPENSTACK, long_vim_type

_ENDPOINT: Final = "interfaceInfo/endpoint"
_TYPE: Final = "vimType"
_OPENSTACK_USER: Final = ("username", "userId", "userDomain", "userDomainId")
_ACCOUNT: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    OPENSTACK: {
        # A password is used in one project: in another one the same user may have other rights.
        "password": (*_OPENSTACK_USER, "project", "projectId", "projectDomain", "projectDomainId"),
        "applicationCredentialSecret": (
            "applicationCredentialId",
            "applicationCredentialName",
            *_OPENSTACK_USER,
        ),
    },
    KUBERNETES: {
        "bearer_token": (),
        # With an OpenID provider, the provider gets password and client_secret, and the API server the token.
        "password": ("username", "oidc_token_url", "client_id"),
        "client_secret": ("oidc_token_url", "client_id"),
        "client_key": ("client_certificate",),
        "certificate_key": (),
    },
}
"""The attributes of accessInfo that say whose a secret is and who else gets it; a secret that is not listed has all of its type."""


@dataclass(frozen=True)
class MovedSecret:
    """A stored secret that would go to another destination than the one that it was given for."""

    place: str
    """``accessInfo/password``."""
    changed: str
    """The attribute of its destination that differs: ``interfaceInfo/endpoint``."""

    def reason(self, changed: str = "") -> str:
        """Return what the caller is asked for; ``changed``: the attribute as the caller names it."""
        return (
            f"required again, because {changed or self.changed} changes: a stored secret is only for the endpoint, user and"
            " CA that it was given for"
        )


def moved_secret(before: Connection, after: Connection) -> MovedSecret | None:
    """Return the first secret of ``before`` that is also in ``after``, where its destination differs; None: there is none.

    A secret that the request has given is no stored one, also if it has the same text: the stored one is sealed.
    """
    stored = {secret for _, secret in _secrets(before)}
    old, new = _destination(before), _destination(after)
    for place, secret in _secrets(after):
        if secret not in stored:
            continue
        for attribute in _attributes(long_vim_type(before.vim_type), place, {**old, **new}):
            if old.get(attribute) != new.get(attribute):
                return MovedSecret(place, attribute)
    return None


def _attributes(kind: str, place: str, known: Collection[str]) -> Iterator[str]:
    """Yield the attributes that the destination of the secret at a place has."""
    account = _ACCOUNT.get(kind, {}).get(_listed_name(kind, place))
    for attribute in known:
        part, _, name = attribute.partition("/")
        if part != "accessInfo" or account is None or name in account:
            yield attribute


def _listed_name(kind: str, place: str) -> str:
    """Return the name of a secret in the table, whatever its spelling in the connection."""
    part, _, name = place.partition("/")
    if part != "accessInfo":
        return ""
    return next(iter(openstack_access({name: True})), name) if kind == OPENSTACK else name


def _destination(connection: Connection) -> dict[str, object]:
    """Return the values of all attributes that say where secrets go, by place; those without a value are None."""
    kind = long_vim_type(connection.vim_type)
    interface, access = connection.interface_info, connection.access_info
    server = str(endpoint(connection) or "").rstrip("/")
    if kind == KUBERNETES:
        ca = interface.get("ssl_ca_cert") or access.get("ssl_ca_cert")
        names = {name for account in _ACCOUNT[KUBERNETES].values() for name in account}
        return {
            _TYPE: kind,
            _ENDPOINT: server,
            "interfaceInfo/ssl_ca_cert": _trust(ca, skips_verification=interface.get("skipTlsVerify") is True),
            **{f"accessInfo/{name}": access.get(name) or None for name in sorted(names)},
        }
    values = openstack_access(access)
    names = {name for account in _ACCOUNT[OPENSTACK].values() for name in account}
    return {
        _TYPE: kind,
        # Keystone is asked at /v3, whatever version the URL has.
        _ENDPOINT: server.removesuffix("/v3").removesuffix("/v2.0"),
        "interfaceInfo/trustedCertificates": _openstack_cas(interface.get("trustedCertificates")),
        **{
            f"interfaceInfo/{name}": str(interface.get(name) or False).lower()
            for name in ("skipCertificateVerification", "skipCertificateHostnameCheck")
        },
        **{f"accessInfo/{name}": values.get(name) for name in sorted(names)},
    }


def _trust(ca: object, *, skips_verification: bool) -> object:
    """Return what is equal for two forms of the same trust in a Kubernetes API server."""
    if isinstance(ca, Secret) and not skips_verification:
        return ca
    trust = cluster_trust(ca, skips_verification=skips_verification)
    return (trust.ca_pem.strip(), trust.is_verified)


def _openstack_cas(certificates: object) -> object:
    return certificates if isinstance(certificates, Secret) else pem(certificates or "").strip()


def _secrets(connection: Connection) -> Iterator[tuple[str, Secret]]:
    """Yield every secret with its place."""
    for part, tree in (("accessInfo", connection.access_info), ("extra", connection.extra)):
        yield from _secret_leaves(tree, part)


def _secret_leaves(tree: object, place: str) -> Iterator[tuple[str, Secret]]:
    if isinstance(tree, Secret):
        yield place, tree
    elif isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from _secret_leaves(value, f"{place}/{name}")
    elif isinstance(tree, list | tuple):
        for index, value in enumerate(tree):
            yield from _secret_leaves(value, f"{place}[{index}]")
