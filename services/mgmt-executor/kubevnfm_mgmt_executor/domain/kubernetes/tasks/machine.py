"""Tasks that make a machine ready for Kubernetes, whatever its role is."""

from __future__ import annotations

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.answers import PrepareAnswer
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import TaskResult


async def reach(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Open a session, and wait for the machine to boot if it must."""
    await run.session(node).reach()
    return TaskResult()


async def copy(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Upload the install script; to a master also the manifest of the pod network."""
    files = {values.SCRIPT_FILE: run.files.script}
    if node.role == "master":
        files[values.CNI_FILE] = run.files.network_manifest
    await run.session(node).copy(files)
    return TaskResult()


async def prepare(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Install the container runtime and kubeadm."""
    answer = await run.session(node).run_script(
        "prepare", values.prepare(run.cluster, node), timeout_s=run.timeouts.node_install, answer=PrepareAnswer
    )
    facts = {} if answer.kubernetes_version is None else {"kubernetes_version": answer.kubernetes_version}
    return TaskResult(changed=answer.changed, facts=facts)
