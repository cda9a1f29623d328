"""Reads the one cluster that a kubeconfig's current context points at.

Only data in the file itself is used: paths and exec plug-ins refer to the machine of the file's author.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from kubevnfm_events import VimConnection
from kubevnfm_kit.cluster_trust import NOT_VERIFIED
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_one_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused, YamlTooLarge
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import Secret

from kubevnfm_clients.kubeconfig_values import (
    check_certificates,
    check_client_certificate,
    check_proxy_url,
    check_server_url,
    check_token,
)

_KUBERNETES = "ETSINFV.KUBERNETES.V_1"
_INSTEAD_OF_PROGRAMS = (
    "token or client-certificate-data, such as the token of a ServiceAccount (a region renews it with token_request),"
)
_ELSEWHERE = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
    "tokenFile": "token",
    "exec": _INSTEAD_OF_PROGRAMS,
    "auth-provider": _INSTEAD_OF_PROGRAMS,
}
_PROXY = "proxy-url"
_NOT_DONE = (_PROXY, "tls-server-name", "username", "password", "as", "as-uid", "as-groups", "as-user-extra")
"""Attributes that kubectl obeys, and a VIM cannot have."""
_CREDENTIALS = ("token", "client-certificate-data", "client-key-data")
_LONGEST_NAME = 253
"""Characters of the name of a context, as in a request that names one."""


def kubeconfig_connection(text: str, *, field: str = "kubeconfig") -> VimConnection:
    """Return endpoint, CA and access data of the kubeconfig's current context.

    Raises: Unprocessable naming the place below ``field``; never with a value of the file.
    """
    return _connection(_read(text, field), field)


def self_contained_connection(text: str, *, field: str = "kubeconfig") -> VimConnection:
    """As `kubeconfig_connection`, of a kubeconfig that is sent (capi.md CR-063).

    Raises: Unprocessable also if it has several users, or refers to files or programs anywhere: the other function reads the current
    context only, and ignores references beside which the data are present.
    """
    config = _read(text, field)
    connection = _connection(config, field)
    _check_self_contained(config, field)
    return connection


@dataclass(frozen=True)
class ContextAccess:
    """One context of a kubeconfig."""

    context: str
    connection: VimConnection
    proxy_url: Secret | None = None
    """With its user and password."""


@dataclass(frozen=True)
class Allowed:
    """The attributes of kubeconfigs that an operator has allowed."""

    skip_verification: bool = False
    """Certificates that are not verified."""
    proxy: bool = False


def context_access(
    text: str,
    *,
    context: str | None = None,
    allowed: Allowed = Allowed(),  # a frozen value
    login: JsonMapping | None = None,
    field: str = "kubeconfig",
) -> ContextAccess:
    """Return a context, the current one unless another is named, of a kubeconfig that an operator gives (multicloud.md MC-074).

    ``login``: access data that are used in place of credentials in the kubeconfig, which has none then. Raises: Unprocessable naming
    ``context``, or ``field`` with the place in its text; also for files, programs, and what is not allowed: none of them is ignored.
    """
    try:
        config = _read(text, "")
        name = config.get("current-context") if context is None else context
        if context is not None and not _has_context(config, context):
            raise Unprocessable("context", "the name of a context of the kubeconfig expected")
        used = _named(config, "context", name, "")
        # It is stored and shown.
        if not isinstance(name, str) or len(name) > _LONGEST_NAME:
            raise Unprocessable("current-context", f"a text of at most {_LONGEST_NAME} characters expected")
        cluster, place = _named(config, "cluster", used.get("cluster"), ""), ".clusters[].cluster"
        _check_entry(cluster, place, allowed)
        # A proxy of a user is none that kubectl knows.
        user = {} if login is not None and not used.get("user") else _named(config, "user", used.get("user"), "")
        _check_entry(user, ".users[].user", Allowed())
        proxy_url = Secret(check_proxy_url(cluster[_PROXY], f"{place}.{_PROXY}")) if cluster.get(_PROXY) else None
        connection = _connection({**config, "current-context": name}, "", login)
    except Unprocessable as error:
        if error.field == "context":
            raise
        place = error.field.removeprefix(".")
        raise Unprocessable(field, f"{place}: {error.reason}" if place else error.reason) from None
    return ContextAccess(name, connection.model_copy(update={"of_vnf": False}), proxy_url)


def _has_context(config: JsonMapping, name: str) -> bool:
    entries = config.get("contexts")
    return isinstance(entries, list) and any(isinstance(one, Mapping) and one.get("name") == name for one in entries)


def _check_entry(holder: JsonMapping, place: str, allowed: Allowed) -> None:
    _check_is_here(holder, place)
    for name in _NOT_DONE:
        if name == _PROXY and place.endswith("cluster"):
            if holder.get(name) and not allowed.proxy:
                raise Unprocessable(f"{place}.{name}", "no value expected: the setting region_proxy does not allow it")
        elif holder.get(name):
            raise Unprocessable(f"{place}.{name}", "not supported: no value expected")
    # False is the default of kubectl.
    if holder.get("insecure-skip-tls-verify") not in (None, False) and not allowed.skip_verification:
        wanted = "certificate-authority-data expected: the setting region_insecure does not allow it"
        raise Unprocessable(f"{place}.insecure-skip-tls-verify", wanted)


def _connection(config: JsonMapping, field: str, login: JsonMapping | None = None) -> VimConnection:
    context = _named(config, "context", config.get("current-context"), field)
    cluster = _named(config, "cluster", context.get("cluster"), field)
    place = f"{field}.clusters[].cluster"
    if login is None:
        access = _access(_named(config, "user", context.get("user"), field), f"{field}.users[].user")
    else:
        user = _named(config, "user", context.get("user"), field) if context.get("user") else {}
        for name in _CREDENTIALS:
            if user.get(name):
                raise Unprocessable(f"{field}.users[].user.{name}", "no value expected beside oidc")
        access = dict(login)
    return VimConnection(
        vim_type=_KUBERNETES,
        interface_info={"endpoint": _server(cluster, place), "ssl_ca_cert": _ca(cluster, place)},
        access_info=access,
        # Every kubeconfig that is read here comes from the cluster of a VNF.
        of_vnf=True,
    )


def _check_self_contained(config: JsonMapping, field: str) -> None:
    for kind, one in (("users", "user"), ("clusters", "cluster")):
        entries = config.get(kind)
        listed = entries if isinstance(entries, list) else []
        if kind == "users" and len(listed) != 1:
            raise Unprocessable(f"{field}.users", f"exactly one user expected, {len(listed)} found")
        for entry in listed:
            holder = _mapping(_mapping(entry, f"{field}.{kind}[]").get(one), f"{field}.{kind}[].{one}")
            _check_is_here(holder, f"{field}.{kind}[].{one}")
            for name in _NOT_DONE:
                if holder.get(name):
                    raise Unprocessable(f"{field}.{kind}[].{one}.{name}", "not supported: no value expected")


def _check_is_here(holder: JsonMapping, field: str) -> None:
    for name, instead in _ELSEWHERE.items():
        if name in holder:
            raise Unprocessable(f"{field}.{name}", f"works on its machine only; {instead} expected")


def _read(text: str, field: str) -> JsonMapping:
    try:
        tree = read_one_kubernetes_yaml(text)
    except YamlRefused as error:
        place = f"line {error.line}: " if error.line is not None else ""
        # Another reason than a limit may quote the file.
        problem = error.problem if isinstance(error, YamlTooLarge) else "one document of YAML expected"
        raise Unprocessable(field, f"{place}{problem}") from None
    return _mapping(tree, field)


def _access(user: JsonMapping, field: str) -> JsonObject:
    token = user.get("token")
    if isinstance(token, str) and token:
        return {"bearer_token": Secret(check_token(token, f"{field}.token"))}
    certificate, key = _pem(user, "client-certificate-data", field), _pem(user, "client-key-data", field)
    if certificate is not None and key is not None:
        names = {"certificate_field": f"{field}.client-certificate-data", "key_field": f"{field}.client-key-data"}
        check_client_certificate(certificate, key, **names)
        return {"client_certificate": certificate, "client_key": Secret(key)}
    # Last: a file may name both; the data in it suffices.
    _check_is_here(user, field)
    raise Unprocessable(field, "token, or client-certificate-data with client-key-data, expected")


def _server(cluster: JsonMapping, field: str) -> str:
    if "certificate-authority" in cluster:
        raise Unprocessable(f"{field}.certificate-authority", "certificate-authority-data expected")
    return check_server_url(cluster.get("server"), f"{field}.server")


def _ca(cluster: JsonMapping, field: str) -> str:
    """Return the CA, or that the certificate is not verified: a VIM must say which (capi.md CR-007)."""
    ca = _pem(cluster, "certificate-authority-data", field)
    if ca is None and cluster.get("insecure-skip-tls-verify") is not True:
        raise Unprocessable(
            f"{field}.certificate-authority-data",
            "base64 of PEM expected; without it, insecure-skip-tls-verify: true leaves the certificate unverified",
        )
    return NOT_VERIFIED if ca is None else check_certificates(ca, f"{field}.certificate-authority-data")


def _pem(holder: JsonMapping, name: str, field: str) -> str | None:
    value = holder.get(name)
    if value is None:
        return None
    try:
        text = base64.b64decode(str(value), validate=True).decode("ascii")
    except (binascii.Error, ValueError) as error:
        raise Unprocessable(f"{field}.{name}", "base64 of PEM expected") from error
    if "-----BEGIN " not in text:
        raise Unprocessable(f"{field}.{name}", "base64 of PEM expected")
    return text


def _named(config: JsonMapping, kind: str, name: object, field: str) -> JsonMapping:
    """Return the context, cluster or user of that name."""
    entries = config.get(f"{kind}s")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and name and entry.get("name") == name:
            return _mapping(entry.get(kind), f"{field}.{kind}s[].{kind}")
    raise Unprocessable(f"{field}.{kind}s", "the entry that the current context names is missing")


def _mapping(value: object, field: str) -> JsonMapping:
    if not isinstance(value, Mapping):
        raise Unprocessable(field, "a mapping expected")
    return value
