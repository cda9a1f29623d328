"""The task that connects a node to private registries (sequences.md M14), the same whatever operation adds the node."""

from __future__ import annotations

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.kubernetes import registry_files, values
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import TaskResult


async def registries(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Let containerd and the kubelet pull from each registry, and try whether they can.

    It comes before the node joins: a kubelet reads the logins once in five minutes, and pulls at once when it starts.
    """
    cluster, files, session = run.cluster, run.files.registries, run.session(node)
    connections = cluster.parameters.private_registry_connection_info
    logins = registry_files.on_the_node(connections, files.authorities, cluster.reveal)
    await session.copy({**files.scripts, **logins})
    return await session.change(
        "registries",
        {**values.proxies(cluster), "REGISTRIES": registry_files.listed(connections)},
        timeout_s=cluster.parameters.registries_limit_s(),
        script=registry_files.SCRIPT,
    )
