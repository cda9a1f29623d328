"""One run of a phase on a cluster: its sessions, and the facts that its tasks learn from the machines."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.driver import Tools
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster
from kubevnfm_mgmt_executor.domain.kubernetes.join_tokens import JoinTokens
from kubevnfm_mgmt_executor.domain.kubernetes.package import InstallFiles
from kubevnfm_mgmt_executor.domain.node_session import NodeSession, ScriptFiles


@dataclass
class Learned:
    """The facts that later tasks and the phase's result need. Each is empty until its task is done."""

    ca_pem: str = ""
    ca_cert_hash: str = ""
    admin_token: str = field(default="", repr=False)
    certificate_key: str = field(default="", repr=False)
    version: str = ""


class ClusterRun:
    """The state that node tasks share. Nothing of it outlives the run: a repeat asks the machines instead."""

    def __init__(self, cluster: Cluster, files: InstallFiles, tools: Tools) -> None:
        self.cluster, self.files, self.tools = cluster, files, tools
        self.timeouts = cluster.parameters.x_timeouts
        self.labels = values.labels(cluster)
        self.learned = Learned()
        self._sessions = {node.vnfc_id: self._new_session(node) for node in cluster.nodes}
        self.master = self.session(cluster.master)
        self.tokens = JoinTokens(
            self.master, tools.recorder, tools.mask, timeout_s=self.timeouts.command, values=values.common(cluster)
        )

    def session(self, node: ManagedNode) -> NodeSession:
        """Return the session of a node; it is opened when a task first uses it."""
        return self._sessions[node.vnfc_id]

    def _new_session(self, node: ManagedNode) -> NodeSession:
        instance = self.cluster.vnf_instance_id
        return NodeSession(
            self.cluster.ssh_address(node),
            self.cluster.login(node),
            ScriptFiles(f".kubevnfm/{instance[:8]}", values.SCRIPT_FILE),
            machines=self.tools.machines,
            output_log=self.tools.output_log,
            mask=self.tools.mask,
            clock=self.tools.clock,
            operation_id=self.tools.operation_id,
            ready_within_s=self.timeouts.ssh_ready,
        )

    async def close(self, *, clean: bool) -> None:
        """Close the sessions; ``clean``: remove the folders on the machines first."""
        sessions = self._sessions.values()
        if clean:
            await asyncio.gather(*(session.clean() for session in sessions))
        await asyncio.gather(*(session.close() for session in sessions))
