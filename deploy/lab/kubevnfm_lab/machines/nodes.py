"""Which machine is which Node: if a machine or its kubelet stops, its Node is not ready."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from kubevnfm_lab.machines.apiclient import MERGE_PATCH, ApiRefusal, Apis, ApiUnreachable
from kubevnfm_lab.machines.controlplanes import API_PORT, ControlPlane
from kubevnfm_lab.machines.kubeconfig import Access
from kubevnfm_lab.machines.machine import Machine

log = logging.getLogger(__name__)


@dataclass
class JoinedNode:
    """A machine's place in a cluster."""

    plane: ControlPlane
    name: str
    address: str
    control_plane: bool
    ready: bool = True


class Nodes:
    """The Nodes that the lab's kubeadm made, by machine."""

    def __init__(self, apis: Apis) -> None:
        self._apis = apis
        self._by_machine: dict[str, JoinedNode] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def node_of(self, machine: Machine) -> JoinedNode | None:
        """Return the machine's place in a cluster."""
        return self._by_machine.get(machine.spec.machine_id)

    async def add(self, machine: Machine, node: JoinedNode) -> None:
        """Register the Node, as a kubelet with a new certificate does."""
        await node.plane.cluster.add_node(node.name, address=node.address, control_plane=node.control_plane)
        self._by_machine[machine.spec.machine_id] = node
        found = await self._apis.api(own_access(node.plane)).request("GET", f"/api/v1/nodes/{node.name}")
        # A new Node is ready at once; only one that was taken over may not be.
        conditions = (found.get("status") or {}).get("conditions") or []
        if any(c.get("type") == "Ready" and c.get("status") != "True" for c in conditions):
            await self._report(node, ready=True)  # the Node of an earlier machine of that name, taken over

    def remove(self, machine: Machine) -> None:
        """Remove a machine that is gone or whose kubelet lost its credential; the Node object stays, not ready."""
        self.settle(machine, gone=True)
        self._by_machine.pop(machine.spec.machine_id, None)

    def settle(self, machine: Machine, *, gone: bool = False) -> None:
        """Update the Node's readiness from its machine and kubelet."""
        node = self.node_of(machine)
        # kubelet posts the status, so without it the Node is unknown even if the machine runs.
        ready = machine.powered and machine.units.is_active("kubelet") and not gone
        if node is None or node.ready == ready:
            return
        node.ready = ready
        task = asyncio.get_running_loop().create_task(self._report(node, ready=ready))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Return once every change was reported."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _report(self, node: JoinedNode, *, ready: bool) -> None:
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        reason = "KubeletReady" if ready else "NodeStatusUnknown"
        message = "kubelet is posting ready status" if ready else "Kubelet stopped posting node status."
        condition = {
            "type": "Ready",
            "status": "True" if ready else "Unknown",
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": moment,
            "lastTransitionTime": moment,
        }
        api = self._apis.api(own_access(node.plane))
        path = f"/api/v1/nodes/{node.name}"
        try:
            current = await api.request("GET", path)
            conditions = [c for c in (current.get("status") or {}).get("conditions") or [] if c.get("type") != "Ready"]
            await api.request(
                "PATCH",
                f"{path}/status",
                body={"status": {"conditions": [*conditions, condition]}},
                content_type=MERGE_PATCH,
            )
        except (ApiRefusal, ApiUnreachable) as error:
            if isinstance(error, ApiRefusal) and error.status != 404:
                log.warning("readiness of node %s was not reported: %s", node.name, error)
            # Otherwise the Node was deleted, or its cluster is gone with its last master: there is no status to report.


def own_access(plane: ControlPlane) -> Access:
    """Return the lab's own connection to a cluster's API server, past load balancers and quorum."""
    return Access(f"https://{plane.address}:{API_PORT}", plane.cluster.ca_pem, plane.cluster.admin_token)
