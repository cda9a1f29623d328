"""The request that sends credentials: its body, its idempotency key, and the URLs that it may go to (capi.md chapter 10)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, Literal
from urllib.parse import urlsplit

from kubevnfm_clients.callback import sha256_hex
from kubevnfm_events.credentials import SendCredentials, WithdrawCredentials
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_mgmt_executor.domain.capi.clusters import ClusterFacts, Credentials
from kubevnfm_mgmt_executor.domain.capi.errors import CallbackNotConfigured, CallbackUrlRefused

_VIM_TYPE: Final = "ETSINFV.KUBERNETES.V_1"
_INSTANCE: Final = "${vnfInstanceId}"
_FIELD: Final = "capi.callback_url"
_AS_SENT: Final = re.compile(r"[!-~]+")
"""A URL is signed as it is sent, so it must need no encoding."""


@dataclass(frozen=True)
class SecretFacts:
    """The Secret that the credentials were read from."""

    name: str
    resource_version: str
    type: str


@dataclass(frozen=True)
class Collected:
    """Credentials of a workload cluster, and the facts beside them."""

    facts: ClusterFacts
    kubernetes_version: str
    secret: SecretFacts
    credentials: Credentials = field(repr=False)
    read_version: str
    """``resourceVersion`` of the Secret as it was read now; ``secret`` may show that of an earlier try."""


@dataclass(frozen=True)
class Request:
    """A call-back, without what every try makes for itself: timestamp, nonce and signature."""

    vnf_instance_id: str
    url: str
    body: bytes
    idempotency_key: str


def receiver_url(
    given: str | None, *, configured: str | None, allowed_hosts: Collection[str], vnf_instance_id: str
) -> str:
    """Return the URL to send to: that of the request, if its host is allowed, or the configured one (CR-068, CR-069).

    ``allowed_hosts``: ``host`` or ``host:port``. Raises CallbackUrlRefused, CallbackNotConfigured.
    """
    wanted = given or configured
    if wanted is None:
        raise CallbackNotConfigured(f"no receiver is configured (receiver_url), and the request names none ({_FIELD})")
    url = wanted.replace(_INSTANCE, vnf_instance_id)
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise CallbackUrlRefused(_FIELD, "a URL expected") from error
    if parts.scheme not in {"https", "http"} or not host or not _AS_SENT.fullmatch(url):
        raise CallbackUrlRefused(_FIELD, "an https URL expected, percent-encoded where necessary")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise CallbackUrlRefused(_FIELD, "no user name, password or fragment expected")
    if parts.scheme == "http" and not _is_loopback(host):
        raise CallbackUrlRefused(_FIELD, "https expected; plain http is allowed to a loopback address only")
    names = {host, f"{host}:{port}"}
    configured_host = urlsplit(configured).hostname if configured is not None else None
    if given is not None and host != configured_host and not names & {each.lower() for each in allowed_hosts}:
        raise CallbackUrlRefused(_FIELD, f"host {host} is not on the list of allowed receivers (receiver_hosts)")
    return url


def created(command: SendCredentials, collected: Collected, *, url: str, operation_id: str) -> Request:
    """Return the request for CREATED or ROTATED; the same arguments give the same bytes (CR-078)."""
    kubeconfig = collected.credentials.kubeconfig.encode()
    body = created_body(command, collected, operation_id=operation_id)
    body["credentials"]["kubeconfig"] = base64.b64encode(kubeconfig).decode()
    key = f"{operation_id}:{collected.facts.uid}:{sha256_hex(kubeconfig)[:16]}"
    return Request(command.vnf_instance_id, url, _bytes(body), key)


def created_body(command: SendCredentials, collected: Collected, *, operation_id: str) -> JsonObject:
    """Return the body of CREATED or ROTATED without the kubeconfig."""
    facts, secret, credentials = collected.facts, collected.secret, collected.credentials
    part: JsonObject = {"format": "kubeconfig", "authType": credentials.auth_type}
    if credentials.expires_at is not None:
        part["expiresAt"] = credentials.expires_at
    return {
        **_head("ROTATED" if command.is_rotation else "CREATED", command, operation_id),
        "cluster": {
            "name": command.cluster.name,
            "namespace": command.cluster.namespace,
            "uid": facts.uid,
            "endpoint": facts.endpoint,
            "kubernetesVersion": collected.kubernetes_version,
            "contract": facts.contract,
            "infrastructureProvider": facts.infrastructure_provider,
        },
        "secret": {
            "name": secret.name,
            "resourceVersion": secret.resource_version,
            "type": secret.type,
        },
        "credentials": part,
        "vim": {
            "register": command.register_vim,
            "name": command.vim_name,
            "type": _VIM_TYPE,
            "isDefault": command.vim_default,
            "extra": {},
        },
    }


def deleted(command: WithdrawCredentials, *, url: str, operation_id: str, uid: str) -> Request:
    """Return the request for DELETED, which carries no credentials (CR-072)."""
    body = deleted_body(command, operation_id=operation_id, uid=uid)
    return Request(command.vnf_instance_id, url, _bytes(body), f"{operation_id}:{uid}:deleted")


def deleted_body(command: WithdrawCredentials, *, operation_id: str, uid: str) -> JsonObject:
    """Return the body of DELETED."""
    return {
        **_head("DELETED", command, operation_id),
        "cluster": {
            "name": command.cluster.name,
            "namespace": command.cluster.namespace,
            "uid": uid,
            "endpoint": command.endpoint,
        },
    }


def _head(
    event: Literal["CREATED", "ROTATED", "DELETED"], command: SendCredentials | WithdrawCredentials, operation_id: str
) -> JsonObject:
    return {
        "schemaVersion": "1",
        "event": event,
        "vnfInstanceId": command.vnf_instance_id,
        "vnfLcmOpOccId": operation_id,
        "vnfdId": command.vnfd_id,
        "managementVimId": command.vim.vim_id,
    }


def _bytes(body: JsonObject) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
