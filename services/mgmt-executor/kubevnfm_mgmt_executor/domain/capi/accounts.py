"""The service account that kubevnfm makes in a workload cluster, so that no admin credentials leave the management cluster (CR-061)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from kubevnfm_clients.cluster_api import ApiAnswer
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_mgmt_executor.domain.capi.errors import NotThereYet, WorkloadRefused

NAMESPACE: Final = "kubevnfm-system"
ACCOUNT: Final = "kubevnfm"
TOKEN_HOLDER: Final = f"{ACCOUNT}-token"
RBAC: Final = "rbac.authorization.k8s.io"
_LABELS: Final = {"app.kubernetes.io/managed-by": "kubevnfm"}
_NAMESPACED: Final = f"/api/v1/namespaces/{NAMESPACE}"
_BINDINGS: Final = f"/apis/{RBAC}/v1/clusterrolebindings"
EXISTS: Final = 409


class AccountsApi(Protocol):
    """An API server. Raises as `kubevnfm_clients.cluster_api.ClusterApi`."""

    async def get(self, path: str) -> ApiAnswer: ...

    async def call(self, method: str, path: str, *, body: JsonMapping | None = None) -> ApiAnswer: ...


@dataclass(frozen=True)
class AccountToken:
    """The token of the service account, and the CA that came with it."""

    token: str = field(repr=False)
    ca_pem: str = field(repr=False)


async def ensure_account(api: AccountsApi, *, cluster_role: str) -> None:
    """Make the namespace, the account, its binding and its token Secret, as far as they are missing.

    Raises: WorkloadRefused.
    """
    role = await api.get(f"/apis/{RBAC}/v1/clusterroles/{cluster_role}")
    # A binding to a role that does not exist is accepted, and its token may do nothing.
    if not role.is_success:
        raise WorkloadRefused(f"the workload cluster has no ClusterRole {cluster_role}: {role.message}")
    await _create(api, "/api/v1/namespaces", new_object("v1", "Namespace", NAMESPACE))
    await _create(api, f"{_NAMESPACED}/serviceaccounts", new_object("v1", "ServiceAccount", ACCOUNT, NAMESPACE))
    await _bind(api, cluster_role)
    secret = new_object("v1", "Secret", TOKEN_HOLDER, NAMESPACE)
    secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": ACCOUNT}
    await _create(api, f"{_NAMESPACED}/secrets", {**secret, "type": "kubernetes.io/service-account-token"})


async def read_token(api: AccountsApi) -> AccountToken:
    """Return the token. Raises NotThereYet until the controller of the cluster has written it."""
    answer = await api.get(f"{_NAMESPACED}/secrets/{TOKEN_HOLDER}")
    data = answer.body.get("data") if answer.is_success else None
    token, ca_pem = (_text(data, name) for name in ("token", "ca.crt"))
    if not token or not ca_pem:
        raise NotThereYet(f"Secret {NAMESPACE}/{TOKEN_HOLDER} of the workload cluster has no token yet")
    return AccountToken(token, ca_pem)


async def _bind(api: AccountsApi, cluster_role: str) -> None:
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": cluster_role}
    binding: JsonObject = {
        **new_object(f"{RBAC}/v1", "ClusterRoleBinding", ACCOUNT),
        "roleRef": reference,
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
    path = f"{_BINDINGS}/{ACCOUNT}"
    present = await api.get(path)
    if present.is_success:
        if present.body.get("roleRef") == reference and present.body.get("subjects"):
            return
        metadata = present.body.get("metadata") or {}
        if not _LABELS.items() <= (metadata.get("labels") or {}).items():
            raise WorkloadRefused(
                f"the workload cluster has a ClusterRoleBinding {ACCOUNT} of another party: rename it"
            )
        # The role of a binding cannot be changed: Kubernetes wants it deleted and created again.
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": metadata.get("uid")}}
        await api.call("DELETE", path, body=options)
    await _create(api, _BINDINGS, binding)


async def _create(api: AccountsApi, path: str, body: JsonObject) -> None:
    answer = await api.call("POST", path, body=body)
    if not answer.is_success and answer.status != EXISTS:
        name = body["metadata"]["name"]
        raise WorkloadRefused(f"the workload cluster refuses {body['kind']} {name}: {answer.message}")


def new_object(api_version: str, kind: str, name: str, namespace: str | None = None) -> JsonObject:
    """Return an object of this VNFM's own without content."""
    metadata: JsonObject = {"name": name, "labels": dict(_LABELS)}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _text(data: object, name: str) -> str:
    value = data.get(name) if isinstance(data, Mapping) else None
    try:
        return base64.b64decode(str(value or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
