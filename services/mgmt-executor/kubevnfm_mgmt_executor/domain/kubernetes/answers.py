"""The results that the install script writes, task by task. Attributes that the driver does not use are ignored."""

from __future__ import annotations

from pydantic import BaseModel, Field

from kubevnfm_mgmt_executor.domain.node_session import ScriptAnswer


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


class VerifyAnswer(ScriptAnswer):
    """The result of ``verify``."""

    nodes: NodeList = NodeList()
