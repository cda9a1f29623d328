"""A short-lived account in the management cluster that reads the kubeconfig Secret of one workload cluster, and its Cluster.

A script of a package gets its token in place of the VIM's access data, which may allow everything in the management cluster
(docs/security.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_mgmt_executor.domain.capi.accounts import EXISTS, RBAC, AccountsApi, new_object
from kubevnfm_mgmt_executor.domain.capi.clusters import GROUP, secret_name
from kubevnfm_mgmt_executor.domain.capi.errors import ReaderRefused

_SHORTEST_S: Final = 600
"""TokenRequest refuses a shorter life."""
_RIGHTS: Final = "create and delete ServiceAccounts, Roles and RoleBindings, and create serviceaccounts/token"


@dataclass(frozen=True)
class ReaderAccount:
    """The account, as long as its objects exist."""

    token: str = field(repr=False)
    uid_by_path: dict[str, str]


async def make_reader(
    api: AccountsApi, cluster: WorkloadCluster, *, cluster_uid: str, life_s: float, owner: str
) -> ReaderAccount:
    """Make the account, its Role and a token; what an interrupted call has left is replaced, and its token with it.

    ``cluster_uid``: the Cluster owns the objects, so none outlives it if this process is killed. ``owner``: the VNF instance.
    Raises: ReaderRefused; as ``ClusterApi``.
    """
    name, namespace = f"kubevnfm-reader-{owner}", cluster.namespace
    rbac = f"/apis/{RBAC}/v1/namespaces/{namespace}"
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"

    def owned(api_version: str, kind: str, **content: object) -> JsonObject:
        made = new_object(api_version, kind, name, namespace)
        made["metadata"]["ownerReferences"] = [
            {"apiVersion": cluster.api_version, "kind": "Cluster", "name": cluster.name, "uid": cluster_uid}
        ]
        return {**made, **content}

    role = owned(
        f"{RBAC}/v1",
        "Role",
        rules=[
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret_name(cluster)], "verbs": ["get"]},
            {"apiGroups": [GROUP], "resources": ["clusters"], "resourceNames": [cluster.name], "verbs": ["get"]},
        ],
    )
    binding = owned(
        f"{RBAC}/v1",
        "RoleBinding",
        roleRef={"apiGroup": RBAC, "kind": "Role", "name": name},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    )
    account = owned("v1", "ServiceAccount", automountServiceAccountToken=False)
    uids = {}
    for folder, body in ((accounts, account), (f"{rbac}/roles", role), (f"{rbac}/rolebindings", binding)):
        uids[f"{folder}/{name}"] = await _replace(api, folder, body)
    answer = await api.call(
        "POST",
        f"{accounts}/{name}/token",
        body={
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": max(_SHORTEST_S, round(life_s))},
        },
    )
    token = (answer.body.get("status") or {}).get("token") if answer.is_success else None
    if not token:
        raise _refused("TokenRequest", answer.message)
    return ReaderAccount(str(token), uids)


async def remove_reader(api: AccountsApi, account: ReaderAccount) -> None:
    """Delete the account, so that its token is valid for ten seconds more at most. Raises as ``ClusterApi``."""
    for path, uid in account.uid_by_path.items():
        # Another call may have replaced it since.
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        await api.call("DELETE", path, body=options)


async def _replace(api: AccountsApi, folder: str, body: JsonObject) -> str:
    """Create the object, in place of one of the same name; return its uid."""
    answer = await api.call("POST", folder, body=body)
    if answer.status == EXISTS:
        await api.call("DELETE", f"{folder}/{body['metadata']['name']}")
        answer = await api.call("POST", folder, body=body)
    if not answer.is_success:
        raise _refused(str(body["kind"]), answer.message)
    return str((answer.body.get("metadata") or {}).get("uid"))


def _refused(kind: str, message: str) -> ReaderRefused:
    return ReaderRefused(
        f"the management cluster does not let the VIM's account make a token for the script: {kind}: {message}. "
        f"Let it {_RIGHTS} in the namespace of the cluster, or set sender_access to vim (docs/security.md)"
    )
