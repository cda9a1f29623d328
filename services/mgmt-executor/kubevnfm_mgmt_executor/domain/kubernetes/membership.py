"""The tasks on the nodes of a cluster that exists: what it says of itself, and how nodes leave it."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.errors import LoginRefused, NodeFailure, NodeNotDrained, NodeUnreachable
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.answers import DrainAnswer, FactsAnswer, JoinAnswer
from kubevnfm_mgmt_executor.domain.kubernetes.built import read_configuration
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, TaskResult

DRAIN_CALL_S: Final = 2
"""How long one call of ``kubectl drain`` waits for pods. Short, because each call takes one of the channels of the session to
the master, and many nodes are drained side by side."""
DRAIN_PAUSE_S: Final = 2.0


async def facts(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Ask the master ``node`` for the CA, the endpoint, the version and the nodes of the cluster."""
    name, learned = run.cluster.name(node), run.learned
    answer = await run.session(node).run_script(
        "facts",
        values.common(run.cluster),
        timeout_s=run.timeouts.command + run.timeouts.node_ready,
        answer=FactsAnswer,
    )
    run.learn_ca(answer.ca_cert)
    try:
        learned.built = read_configuration(answer.configuration)
    except ValueError as error:
        raise NodeFailure(f"ConfigMap kube-system/kubeadm-config: {error}", node=name) from error
    learned.not_ready = frozenset(one.metadata.name for one in answer.nodes.items if not one.is_ready)
    members = {one.metadata.name for one in answer.nodes.items} | {run.cluster.name(one) for one in run.cluster.targets}
    if len(members) > learned.built.places:
        raise NodeFailure(
            f"the pod network has room for {learned.built.places} nodes, and there would be {len(members)}", node=name
        )
    return TaskResult(
        changed=False, facts={"ca_cert_hash": learned.ca_cert_hash, "kubernetes_version": f"v{learned.built.version}"}
    )


async def hosts(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Write the names of the nodes that stay, or join, into the hosts file of a node that is in the cluster already."""
    cluster, session = run.cluster, run.session(node)
    leaving = cluster.targets if run.learned.is_cordoned else ()
    staying = [one for one in cluster.nodes if one not in leaving]
    # Nothing in the cluster depends on these names, so an old node that is out of order does not hold the others up.
    # Its file is written as a whole by the next scaling.
    excuse = await excuse_of(run, node)
    if excuse:
        return TaskResult(changed=False, remark=f"its hosts file stays as it is: {excuse}")
    return await session.change("hosts", values.hosts(cluster, staying), timeout_s=run.timeouts.command)


async def excuse_of(run: ClusterRun, node: ManagedNode) -> str:
    """Return why a node that stays in the cluster cannot be worked on; empty: it has the script now.

    Raises as `NodeSession.reach` for the master through which the cluster is worked on.
    """
    session, is_master = run.session(node), node is run.cluster.master
    if not is_master and run.cluster.name(node) in run.learned.not_ready:
        return "its Node is not Ready"
    if node in run.silent:
        return "it does not answer"
    try:
        await session.reach()
    except (NodeUnreachable, LoginRefused) as error:
        if is_master:
            raise
        return error.reason
    await session.copy({values.SCRIPT_FILE: run.files.script})
    return ""


async def cordon(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Keep new pods off all nodes that leave, through the master ``node``, before the first of them is drained."""
    run.learned.is_cordoned = True
    return await _on_targets(run, node, "cordon")


async def uncordon(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Let pods run again on the nodes that could not leave; nodes that people have cordoned stay so."""
    return await _on_targets(run, node, "uncordon")


async def _on_targets(run: ClusterRun, master: ManagedNode, task: str) -> TaskResult:
    # Each node takes a few calls of the API.
    limit_s = run.timeouts.command * (1 + len(run.cluster.targets))
    return await run.session(master).change(task, values.of_nodes(run.cluster, run.cluster.targets), timeout_s=limit_s)


async def drain(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Evict the pods of ``node`` through the master, as PodDisruptionBudgets allow; those of DaemonSets stay.

    A node that is not Ready confirms the end of no pod. Once ``x_timeouts.node_dead`` is over, its pods are given up: they
    end with its Node.
    """
    name, limits, recorder = run.cluster.name(node), run.timeouts, run.tools.recorder
    node_id, began, changed, published = NodeId(node.vnfc_id, name), time.monotonic(), False, ""
    while True:
        answer = await run.master.run_script(
            "drain",
            values.drain(run.cluster, node, call_s=DRAIN_CALL_S),
            timeout_s=limits.command + DRAIN_CALL_S,
            answer=DrainAnswer,
            about=name,
        )
        changed = changed or answer.changed
        if answer.drained:
            return TaskResult(changed=changed)
        waited_s, waits_for = time.monotonic() - began, answer.waits_for
        is_dead = answer.node is not None and not answer.node.is_ready
        if is_dead and waited_s >= limits.node_dead:
            return TaskResult(remark=f"not Ready for {limits.node_dead} s: its pods are given up: {waits_for}")
        if waited_s >= limits.drain:
            if run.cluster.parameters.x_drain.on_failure == "continue":
                return TaskResult(remark=f"not drained within {limits.drain} s; it leaves with {waits_for}")
            raise NodeNotDrained(
                f"not drained within {limits.drain} s; it waits for {waits_for}", node=name, task="drain"
            )
        if waits_for != published:
            published = waits_for
            await recorder.progress(node_id, "drain", f"waits for {waits_for}")
        await asyncio.sleep(DRAIN_PAUSE_S)


async def delete(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Delete the Node object of ``node`` through the master."""
    given, limit_s = values.delete(run.cluster, node), run.timeouts.command + run.timeouts.node_ready
    return await run.master.change("delete", given, timeout_s=limit_s, about=run.cluster.name(node))


async def look_for_join(run: ClusterRun, node: ManagedNode) -> JoinAnswer:
    """Ask the machine of ``node`` whether it has joined the cluster, which takes no token and changes nothing else."""
    return await run.session(node).run_script(
        "join",
        run.as_built(values.join(run.cluster, node, ca_cert_hash=run.learned.ca_cert_hash, token="")),
        # A master that was complete gets node_ready until its API server answers.
        timeout_s=run.timeouts.command + (run.timeouts.node_ready if node.role == "master" else 0),
        answer=JoinAnswer,
    )


async def clear(run: ClusterRun, node: ManagedNode, earlier: Earlier | None) -> TaskResult:
    """Delete the Node that the former machine has left under the name of ``node``, unless ``node`` has joined itself.

    A kubelet that was started again before its machine was replaced has registered its Node again, and as long as that one
    counts as Ready, no other machine of that name can join.
    """
    looked = await look_for_join(run, node)
    return TaskResult(changed=False) if looked.joined else await delete(run, node, earlier)
