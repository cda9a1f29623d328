"""The facts of a VIM as a cloud region of the multi-cloud API (multicloud.md chapter 11)."""

from __future__ import annotations

from kubevnfm_clients.multicloud.regions import RegionAuth
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import SecretParams
from pydantic import BaseModel, ConfigDict, Field


class RegionFacts(BaseModel):
    """Its key, what the registration said of it, and what was found there."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True, hide_input_in_errors=True)

    id: str
    """``<owner>/<region>``; a unique index on it decides races between two registrations."""
    cloud_owner: str
    cloud_region: str
    auth: RegionAuth
    context: str = ""
    """The context of the kubeconfig that was used."""
    labels: dict[str, str] = Field(default_factory=dict)
    kv: JsonObject = Field(default_factory=dict)
    default_namespace_labels: dict[str, str] = Field(default_factory=dict)
    protected_namespaces: tuple[str, ...] = ()
    other_connectivity: SecretParams = Field(default_factory=dict)
    """``other-connectivity-list``: kept for the clients that sent it."""
    cluster_uid: str = ""
    """The uid of the namespace ``kube-system``, which is that of the cluster; empty if it may not be read."""
    capabilities: tuple[str, ...] = ()
    missing_permissions: tuple[str, ...] = ()
    """The permissions that the user of the kubeconfig lacks, although some resources of the API need them."""
    not_after: str | None = None
    """When the first part of the access data expires; None: nothing says when."""
