"""The common part of the drafts of operations on machines that are, or become, the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from kubevnfm_cluster.parameters import ClusterParameters
from kubevnfm_events import ClusterAccess
from kubevnfm_events.kuryr import KuryrNetwork
from kubevnfm_events.mgmt import PhaseDone, ScriptAnswer
from kubevnfm_events.vim import VimRegistered
from kubevnfm_sol.vim import CREATED_BY, KUBERNETES, VimConnectionInfo
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.granting import granted_zones
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.released import with_cluster
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft


class ClusterDraft(ScriptedDraft):
    """An operation on a VNF of machines, which may be the nodes of a cluster."""

    cluster_parameters: ClusterParameters | None = None
    """None: this VNF is not a cluster."""
    max_nodes: int | None = None
    """The most nodes that the cluster can have."""
    node_names: dict[str, str] = Field(default_factory=dict)
    """Kubernetes node by VNFC id: as the instance has them, then as the driver has reported them."""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        return super().from_document(with_cluster(document, "cluster_parameters"))

    @property
    def granted_zones(self) -> Mapping[str, tuple[str, ...]]:
        """By VDU, in the order of the GrantRequest's resources."""
        return granted_zones(self.grant, self.grant_request)

    def after_phase(self, reply: PhaseDone) -> Self:
        """Return the draft with what the driver's phase made known."""
        return self.model_copy(update={"node_names": reply.node_names}) if reply.node_names else self


class ClusterBuildDraft(ClusterDraft):
    """An operation in which a driver, or a script of the package, may build a cluster."""

    cluster_vim_name: str | None = None
    """The name under which the cluster is registered; None if this VNF is not a cluster."""
    kuryr_network: KuryrNetwork | None = None
    """The network entities of a cluster with Kuryr, once they are found."""
    cluster: ClusterAccess | None = None
    """How to reach the cluster, once it is built."""
    wanted_vim_id: str | None = None
    """The id that a driver class of the package was given for the VIM that it has created; None: it has created none. A VIM of
    that name keeps its own id."""
    cluster_vim: VimRegistered | None = None

    @property
    def registers_vim(self) -> bool:
        return self.wanted_vim_id is not None

    def after_phase(self, reply: PhaseDone) -> Self:
        """Return the draft with what the driver's phase made known: a cluster's access data and its nodes."""
        draft = super().after_phase(reply)
        return draft if reply.cluster is None else draft.model_copy(update={"cluster": reply.cluster})

    def with_script(self, answer: ScriptAnswer) -> Self:
        draft, vim = super().with_script(answer), answer.vim
        if vim is None:
            return draft
        update = {"cluster": vim.access, "cluster_vim_name": vim.name, "wanted_vim_id": vim.vim_id}
        return draft.model_copy(update=update)

    def with_kuryr_network(self, network: KuryrNetwork) -> Self:
        """Return the draft with the network entities of a cluster with Kuryr."""
        return self.model_copy(update={"kuryr_network": network})

    def with_cluster_vim(self, vim: VimRegistered) -> Self:
        """Return the draft with the VIM that the cluster is registered as."""
        return self.model_copy(update={"cluster_vim": vim})

    def with_own_vim(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with the VIM of the cluster that was built; as it is if none was."""
        if self.cluster is None or self.cluster_vim is None or self.cluster_vim_name is None:
            return instance
        entry = cluster_connection(self.vnf_instance_id, self.cluster, self.cluster_vim)
        connections = {**instance.vnf.vim_connection_info, self.cluster_vim_name: entry}
        return instance.with_vnf(vim_connection_info=connections).with_internals(
            cluster_vim_id=self.cluster_vim.vim_id, cluster_vim_key=self.cluster_vim_name
        )


def cluster_connection(instance_id: str, cluster: ClusterAccess, vim: VimRegistered) -> VimConnectionInfo:
    """Return the entry of sequences.md 4.3: enough to register the VIM by hand (SEQ-038)."""
    extra: dict[str, Any] = {"ssl_ca_cert_hash": cluster.ssl_ca_cert_hash, CREATED_BY: instance_id}
    access: dict[str, Any] = {"bearer_token": cluster.bearer_token}
    if cluster.certificate_key is not None:
        access["certificate_key"] = cluster.certificate_key
    return VimConnectionInfo(
        vim_id=vim.vim_id,
        vim_type=KUBERNETES,
        interface_info={"endpoint": cluster.server, "ssl_ca_cert": cluster.ssl_ca_cert},
        access_info=access,
        extra=extra,
    )
