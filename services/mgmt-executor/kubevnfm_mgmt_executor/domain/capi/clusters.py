"""Reads Cluster objects and their kubeconfig Secrets, and writes the kubeconfig of a service account. Pure functions."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit

from cryptography import x509
from kubevnfm_clients.kubeconfig import kubeconfig_connection, self_contained_connection
from kubevnfm_events import VimConnection
from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing, map_secrets

from kubevnfm_mgmt_executor.domain.capi.errors import KubeconfigRefused, NotThereYet

GROUP: Final = "cluster.x-k8s.io"
_KUBECONFIG_TYPE: Final = "cluster.x-k8s.io/secret"
_CLUSTER_LABEL: Final = "cluster.x-k8s.io/cluster-name"
_PORTS: Final = {"https": 443, "http": 80}

AuthType = Literal["bearer_token", "client_certificate"]


@dataclass(frozen=True)
class ClusterFacts:
    """The facts of a Cluster object that the call-back reports."""

    uid: str
    endpoint: str
    """``https://host:port``."""
    contract: str
    infrastructure_provider: str
    topology_version: str
    """``spec.topology.version``; "" without a topology."""


@dataclass(frozen=True)
class Credentials:
    """A kubeconfig with its credentials in clear: only in memory, never shown."""

    kubeconfig: str = field(repr=False)
    connection: VimConnection = field(repr=False)
    auth_type: AuthType
    expires_at: str | None
    """RFC 3339; None: they do not expire."""

    def secrets(self, ring: KeyRing) -> list[str]:
        """Return the texts that nothing may show: those of the login, and the sent form of the kubeconfig.

        Not the kubeconfig's text: that has words which a receiver may name.
        """
        found = [base64.b64encode(self.kubeconfig.encode()).decode()]
        map_secrets(self.connection.access_info, lambda secret: found.append(secret.reveal(ring)))
        return found


def contract_of(cluster: WorkloadCluster) -> str:
    """Return ``v1beta1`` or another version of the contract. Raises InvalidInput for another API group."""
    group, _, version = cluster.api_version.partition("/")
    if group != GROUP or not version:
        raise InvalidInput("cluster.api_version", f"{GROUP}/<version> expected")
    return version


def cluster_path(cluster: WorkloadCluster) -> str:
    """Return the path of the Cluster object in its management cluster."""
    return f"/apis/{GROUP}/{contract_of(cluster)}/namespaces/{cluster.namespace}/clusters/{cluster.name}"


def secret_path(cluster: WorkloadCluster) -> str:
    """Return the path of the cluster's kubeconfig Secret, the only one of its Secrets that is read."""
    return f"/api/v1/namespaces/{cluster.namespace}/secrets/{secret_name(cluster)}"


def secret_name(cluster: WorkloadCluster) -> str:
    """Return the name of the cluster's kubeconfig Secret."""
    return f"{cluster.name}-kubeconfig"


def read_cluster(obj: JsonMapping, cluster: WorkloadCluster) -> ClusterFacts:
    """Return the facts of a Cluster object. Raises NotThereYet without an endpoint."""
    spec = _mapping(obj.get("spec"))
    endpoint = _mapping(spec.get("controlPlaneEndpoint"))
    host, port = str(endpoint.get("host") or ""), endpoint.get("port")
    if not host or not isinstance(port, int):
        raise NotThereYet(f"cluster {cluster.name} has no control plane endpoint yet")
    kind = str(_mapping(spec.get("infrastructureRef")).get("kind") or "")
    return ClusterFacts(
        uid=str(_mapping(obj.get("metadata")).get("uid") or ""),
        endpoint=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        contract=contract_of(cluster),
        infrastructure_provider=kind.removesuffix("Cluster").lower(),
        topology_version=str(_mapping(spec.get("topology")).get("version") or ""),
    )


def read_kubeconfig_secret(secret: JsonMapping, cluster: WorkloadCluster, facts: ClusterFacts) -> Credentials:
    """Return the administrator's credentials (CR-059, CR-063). Raises KubeconfigRefused, which names the place."""
    place = f"Secret {secret_name(cluster)}"
    if secret.get("type") != _KUBECONFIG_TYPE:
        raise KubeconfigRefused(place, f"type {_KUBECONFIG_TYPE} expected")
    label = _mapping(_mapping(secret.get("metadata")).get("labels")).get(_CLUSTER_LABEL)
    if label != cluster.name:
        raise KubeconfigRefused(place, f"label {_CLUSTER_LABEL}: {cluster.name} expected")
    value = _mapping(secret.get("data")).get("value")
    try:
        text = base64.b64decode(str(value or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        # Without the cause: its text has a part of the value.
        raise KubeconfigRefused(f"{place}: data.value", "base64 of UTF-8 expected") from None
    if not text:
        raise KubeconfigRefused(f"{place}: data.value", "a kubeconfig expected")
    field_name = f"{place}: data.value"
    try:
        connection = self_contained_connection(text, field=field_name)
    except Unprocessable as error:
        raise KubeconfigRefused(error.field, error.reason) from None
    server = str(connection.interface_info["endpoint"])
    if host_and_port(server) != host_and_port(facts.endpoint):
        raise KubeconfigRefused(
            f"{field_name}.clusters[].cluster.server",
            f"the control plane endpoint {facts.endpoint} expected, not {server}",
        )
    certificate = connection.access_info.get("client_certificate")
    if certificate is None:
        return Credentials(text, connection, "bearer_token", None)
    return Credentials(text, connection, "client_certificate", _end_of(str(certificate), field_name))


def token_kubeconfig(cluster: WorkloadCluster, endpoint: str, *, ca_pem: str, token: str) -> Credentials:
    """Return the credentials of a service account; the same arguments give the same bytes."""
    user = f"{cluster.name}-kubevnfm"
    # JSON is YAML, and its form does not depend on a library.
    text = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": user,
            "contexts": [{"name": user, "context": {"cluster": cluster.name, "user": user}}],
            "clusters": [
                {
                    "name": cluster.name,
                    "cluster": {
                        "server": endpoint,
                        "certificate-authority-data": base64.b64encode(ca_pem.encode()).decode(),
                    },
                }
            ],
            "users": [{"name": user, "user": {"token": token}}],
        }
    )
    return Credentials(text, kubeconfig_connection(text), "bearer_token", None)


def _end_of(certificate: str, place: str) -> str:
    try:
        ends_at = x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    except ValueError:
        raise KubeconfigRefused(f"{place}.users[].user.client-certificate-data", "a certificate expected") from None
    return ends_at.isoformat(timespec="seconds").replace("+00:00", "Z")


def host_and_port(url: str) -> tuple[str, int]:
    """Return the host in lower case, and the port or that of the scheme."""
    parts = urlsplit(url)
    return (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 443)


def _mapping(value: object) -> JsonMapping:
    return value if isinstance(value, Mapping) else {}
