"""The task that installs Helm on a master, by the script of the package (sequences.md M17)."""

from __future__ import annotations

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.package import HELM_SCRIPT
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import TaskResult


async def helm(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Run the package's script, unless the machine has a Helm that runs; it must have one then."""
    session = run.session(node)
    await session.copy(run.files.helm)
    limit_s = run.cluster.parameters.helm_limit_s()
    return await session.change("helm", values.proxies(run.cluster), timeout_s=limit_s, script=HELM_SCRIPT)
