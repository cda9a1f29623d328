"""Tasks that make workers members of the cluster, and check that they are."""

from __future__ import annotations

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.answers import JoinAnswer, VerifyAnswer
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.node_session import ScriptAnswer
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import TaskResult


async def join(run: ClusterRun, node: ManagedNode, earlier: Earlier | None) -> TaskResult:
    """Run ``kubeadm join``, with a bootstrap token that is made when the first node needs one."""
    session, ca_cert_hash = run.session(node), run.learned.ca_cert_hash
    if earlier is not None:
        # An earlier try may have succeeded. To find out needs no token, and for a node that is a member none is made.
        looked = await session.run_script(
            "join",
            values.join(run.cluster, node, ca_cert_hash=ca_cert_hash, token=""),
            timeout_s=run.timeouts.command,
            answer=JoinAnswer,
        )
        if looked.joined:
            return TaskResult(changed=looked.changed)
    token = await run.tokens.token()
    answer = await session.run_script(
        "join",
        values.join(run.cluster, node, ca_cert_hash=ca_cert_hash, token=token),
        timeout_s=run.timeouts.node_install,
        answer=JoinAnswer,
    )
    return TaskResult(changed=answer.changed)


async def label(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Label the workers with their compute hosts and zones, through the master ``node``."""
    if not run.labels["LABELS"]:
        return TaskResult(changed=False)
    # A kubelet registers its node only after it has received its certificate, so kubectl may have to wait for it.
    timeout_s = run.timeouts.command + run.timeouts.node_ready
    answer = await run.session(node).run_script("label", run.labels, timeout_s=timeout_s, answer=ScriptAnswer)
    return TaskResult(changed=answer.changed)


async def verify(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Wait until every node is Ready, seen from the master ``node``; learn their uids and the version."""
    cluster, name = run.cluster, run.cluster.name(node)
    answer = await run.session(node).run_script(
        "verify",
        values.verify(cluster),
        # The script waits three times: until the nodes are registered, until they are Ready, and for CoreDNS.
        timeout_s=run.timeouts.command + 3 * run.timeouts.node_ready,
        answer=VerifyAnswer,
    )
    found = {item.metadata.name: item for item in answer.nodes.items}
    # The list is read after these waits: a node may have stopped being Ready since.
    unready = [one for one in cluster.name_by_vnfc.values() if one not in found or not found[one].is_ready]
    if unready:
        raise NodeFailure(f"not Ready: {', '.join(sorted(unready))}", node=name)
    run.learned.version = found[name].status.node_info.kubelet_version
    # The uid distinguishes a node from an older one with the same name.
    uids = {vnfc_id: found[one].metadata.uid for vnfc_id, one in cluster.name_by_vnfc.items()}
    return TaskResult(facts={"node_uids": uids, "kubernetes_version": run.learned.version})
