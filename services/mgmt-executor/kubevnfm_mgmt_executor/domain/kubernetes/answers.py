"""The results that the install script writes, task by task. Attributes that the driver does not use are ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, Field

from kubevnfm_mgmt_executor.domain.node_session import ScriptAnswer

_REFUSED: Final = re.compile(r'error when evicting pods/"([^"]+)" -n "([^"]+)" \(will retry after \S+\): (.*)')
"""kubectl (pkg/drain): an eviction that was refused, such as one by a PodDisruptionBudget."""


class PrepareAnswer(ScriptAnswer):
    """The result of ``prepare``."""

    kubernetes_version: str | None = None


class InitAnswer(ScriptAnswer):
    """The result of ``init``."""

    ca_cert: str = ""
    """In PEM form."""


class AdminAnswer(ScriptAnswer):
    """The result of ``admin``."""

    token_base64: str = Field(default="", repr=False)


class TokenAnswer(ScriptAnswer):
    """The result of ``token``."""

    token: str = Field(default="", repr=False)


class JoinAnswer(ScriptAnswer):
    """The result of ``join``."""

    joined: bool = False
    """Whether the node is a member of the cluster. Without a token, the script only finds out."""


class EndpointHealth(BaseModel):
    """Whether etcd answers at one URL for clients, as ``etcdctl endpoint health -w json`` says."""

    endpoint: str
    health: bool = False


class MembersAnswer(ScriptAnswer):
    """The result of ``members``."""

    members: str = ""
    """Lines of ``etcdctl member list -w simple``: id, state, name, URLs for members, URLs for clients, whether it learns."""
    health: tuple[EndpointHealth, ...] = ()


class NodeMetadata(BaseModel):
    """ObjectMeta of a Node."""

    name: str
    uid: str = ""


class NodeCondition(BaseModel):
    """NodeCondition."""

    type: str
    status: str


class NodeInfo(BaseModel):
    """NodeSystemInfo."""

    kubelet_version: str = Field(default="", alias="kubeletVersion")


class NodeStatus(BaseModel):
    """NodeStatus."""

    conditions: tuple[NodeCondition, ...] = ()
    node_info: NodeInfo = Field(default=NodeInfo(), alias="nodeInfo")


class KubernetesNode(BaseModel):
    """A Node as ``kubectl get nodes -o json`` prints it."""

    metadata: NodeMetadata
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Whether the kubelet reports that pods can run."""
        return any(condition.type == "Ready" and condition.status == "True" for condition in self.status.conditions)


class NodeList(BaseModel):
    """A NodeList."""

    items: tuple[KubernetesNode, ...] = ()


class Owner(BaseModel):
    """OwnerReference."""

    kind: str = ""
    controller: bool = False


class PodMetadata(BaseModel):
    """ObjectMeta of a Pod."""

    name: str
    namespace: str = "default"
    annotations: Mapping[str, str] = Field(default_factory=dict)
    owners: tuple[Owner, ...] = Field(default=(), alias="ownerReferences")
    ends_at: str | None = Field(default=None, alias="deletionTimestamp")


class PodStatus(BaseModel):
    """PodStatus."""

    phase: str = ""


class Pod(BaseModel):
    """A Pod as ``kubectl get pods -o json`` prints it."""

    metadata: PodMetadata
    status: PodStatus = PodStatus()

    @property
    def stays(self) -> bool:
        """Whether a drain leaves it alone: it belongs to the node, as pods of DaemonSets and static ones do."""
        of_node = any(owner.controller and owner.kind in ("DaemonSet", "Node") for owner in self.metadata.owners)
        return of_node or "kubernetes.io/config.mirror" in self.metadata.annotations


class PodList(BaseModel):
    """A PodList."""

    items: tuple[Pod, ...] = ()


class DrainAnswer(ScriptAnswer):
    """The result of ``drain``; the other attributes are there if the node is not drained yet."""

    drained: bool = False
    node: KubernetesNode | None = None
    pods: PodList = PodList()
    output: str = ""
    """Output of kubectl."""

    @property
    def waits_for(self) -> str:
        """The pods that are still on the node, each with what holds it up."""
        # kubectl prints one such line each time when it tries again, so the last one counts.
        refused = {f"{found[2]}/{found[1]}": found[3].rstrip(".") for found in _REFUSED.finditer(self.output)}
        return ", ".join(
            f"{place} ({'terminating' if pod.metadata.ends_at else refused.get(place, 'not evicted yet')})"
            for pod in self.pods.items
            if not pod.stays
            for place in [f"{pod.metadata.namespace}/{pod.metadata.name}"]
        )


class FactsAnswer(ScriptAnswer):
    """The result of ``facts``."""

    ca_cert: str = ""
    """In PEM form."""
    configuration: str = ""
    """The ClusterConfiguration that kubeadm keeps in the cluster, in YAML."""
    nodes: NodeList = NodeList()


class VerifyAnswer(ScriptAnswer):
    """The result of ``verify``."""

    nodes: NodeList = NodeList()
