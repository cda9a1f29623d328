"""The facts of a VIM as a cloud region of the multi-cloud API (multicloud.md chapter 11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kubevnfm_clients.multicloud.region_inventories import RegionInventory
from kubevnfm_clients.multicloud.regions import RegionAuth, TokenRequest
from kubevnfm_clients.multicloud.suspension import Suspension
from kubevnfm_kit.clock import rfc3339
from kubevnfm_secrets import Secret, SecretParams
from pydantic import BaseModel, ConfigDict, Field

from kubevnfm_vim_registry.domain.expiry import first_expiry
from kubevnfm_vim_registry.domain.inventories import InventoryState


class RegionFacts(BaseModel):
    """Its key, what the registration said of it, and what was found there."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    id: str
    """``<owner>/<region>``; a unique index on it decides races between two registrations."""
    cloud_owner: str
    cloud_region: str
    auth: RegionAuth = "token"
    context: str = ""
    """The context of the kubeconfig that was used."""
    inventory: RegionInventory | None = None
    """Where the kubeconfig is read from; None: a request has brought it."""
    inventory_state: InventoryState | None = None
    token_request: TokenRequest | None = None
    proxy_url: Secret | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    kv: SecretParams = Field(default_factory=dict)
    default_namespace_labels: dict[str, str] = Field(default_factory=dict)
    protected_namespaces: tuple[str, ...] = ()
    links_namespace: str = "default"
    sriov_namespace: str = "sriov-network-operator"
    other_connectivity: SecretParams = Field(default_factory=dict)
    """``other-connectivity-list``: kept for the clients that sent it."""
    cluster_uid: str = ""
    """The uid of the namespace ``kube-system``, which is that of the cluster; empty if it may not be read."""
    capabilities: tuple[str, ...] = ()
    missing_permissions: tuple[str, ...] = ()
    """The permissions that the user of the kubeconfig lacks, although some resources of the API need them."""
    not_after: str | None = None
    """When the first part of the access data expires; None: nothing says when."""
    suspended: Suspension | None = None


INVENTORY_TYPE: Final = "region/inventory/type"
SUSPENDED_SINCE: Final = "region/suspended/since"
"""The paths in the document, which few regions have."""
FOUND: Final = ("auth", "cluster_uid", "capabilities", "missing_permissions", "not_after")
"""The attributes that the cluster and its access data decide."""


def with_access(facts: RegionFacts, access: Mapping[str, object]) -> RegionFacts:
    """Return the facts of a region that has these access data in clear: how they log in, in the order of clients, and until when."""
    auth: RegionAuth = "token"
    if facts.token_request is not None:
        auth = "token-request"
    elif access.get("oidc_token_url"):
        auth = "oidc"
    elif access.get("client_certificate") and not access.get("bearer_token"):
        auth = "client-certificate"
    expiry = first_expiry(access)
    return facts.model_copy(update={"auth": auth, "not_after": rfc3339(expiry.at) if expiry is not None else None})


@dataclass(frozen=True)
class Permission:
    """One kind of action on one kind of objects, in all namespaces."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}/{self.subresource}" if self.subresource else f"{self.verb} {resource}"


_OBJECTS: Final = (
    *(("", name) for name in ("namespaces", "pods", "services", "configmaps", "secrets")),
    ("apps", "deployments"),
)
"""The kinds that nearly every VNF has. Others are checked when a VNF has them."""
NEEDED: Final = tuple(
    Permission(verb, resource, group)
    for group, resource in _OBJECTS
    for verb in ("get", "list", "watch", "create", "patch", "delete")
)
"""Without these no VNF can be brought up."""
_READ: Final = ("list", "watch")
_OWNED: Final = ("get", "create", "patch", "delete")
RESTART: Final = Permission("update", "virtualmachines", "subresources.kubevirt.io", "restart")
"""A heal of a machine that KubeVirt starts by a request alone needs it (multicloud.md MC-063)."""
_FOR_ALL: Final = tuple(
    Permission(verb, resource, group)
    for group, resource, verbs in (
        ("", "nodes", _READ),
        ("", "persistentvolumes", (*_READ, *_OWNED)),
        ("", "persistentvolumeclaims", ("watch", *_OWNED)),
        ("storage.k8s.io", "storageclasses", ("get",)),
        ("apiextensions.k8s.io", "customresourcedefinitions", _READ),
        ("resource.k8s.io", "resourceslices", _READ),
    )
    for verb in verbs
)
"""Features, volumes and capabilities need these."""
USEFUL: Final = (*_FOR_ALL, RESTART)

_CAPABILITIES: Final[Mapping[str, str]] = {
    "k8s.cni.cncf.io": "multus",
    "kubeovn.io": "kube-ovn",
    "k8s.ovn.org": "ovn-kubernetes",
    "k8s.plugin.opnfv.org": "ovn4nfv",
    "sriovnetwork.openshift.io": "sriov-operator",
    "kubevirt.io": "kubevirt",
    "cdi.kubevirt.io": "cdi",
    "nfd.k8s-sigs.io": "nfd",
    "nfd.kubernetes.io": "nfd",
    "resource.k8s.io": "dra",
    "cluster.x-k8s.io": "cluster-api",
    "multicluster.x-k8s.io": "cluster-inventory",
}
"""The capability that an API group stands for."""


def capabilities_of(groups: Iterable[str]) -> frozenset[str]:
    """Return the capabilities of a cluster that serves these API groups (multicloud.md MC-073)."""
    return frozenset(_CAPABILITIES[group] for group in groups if group in _CAPABILITIES)


@dataclass(frozen=True)
class Inspected:
    """The facts that were found in a cluster with the access data of a region."""

    cluster_uid: str
    """Empty: the namespace ``kube-system`` may not be read."""
    groups: tuple[str, ...]
    missing: frozenset[Permission]

    @property
    def missing_permissions(self) -> tuple[str, ...]:
        """The permissions that some resources of the API need; that for virtual machines only where there can be some."""
        useful = USEFUL if "kubevirt" in capabilities_of(self.groups) else _FOR_ALL
        return tuple(str(each) for each in useful if each in self.missing)
