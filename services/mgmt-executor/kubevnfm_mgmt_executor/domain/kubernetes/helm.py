"""The task that installs Helm on a master, by the script of the package (sequences.md M17)."""

from __future__ import annotations

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.package import HELM_SCRIPT
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.node_session import ScriptAnswer
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import TaskResult


async def helm(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Run the package's script, unless the machine has a Helm that runs; it must have one then."""
    session = run.session(node)
    await session.copy(run.files.helm)
    answer = await session.run_script(
        "helm",
        values.proxies(run.cluster),
        timeout_s=run.cluster.parameters.helm_limit_s(),
        answer=ScriptAnswer,
        script=HELM_SCRIPT,
    )
    return TaskResult(changed=answer.changed)
