"""The tasks on the masters of a cluster that has several: the balancer, the members of etcd, and the join of a master."""

from __future__ import annotations

from typing import Final

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from kubevnfm_mgmt_executor.domain.kubernetes import membership, values
from kubevnfm_mgmt_executor.domain.kubernetes.answers import JoinAnswer, MembersAnswer
from kubevnfm_mgmt_executor.domain.kubernetes.quorum import QuorumAtRisk, next_to_heal, takes_part
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import TaskResult

JOIN_TRIES: Final = 3


async def balance(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Let haproxy and keepalived on a master lead to all that serve; wait until the virtual address answers.

    A master that stays as it is, and is out of order, does not hold the others up: haproxy there uses no server that is down.
    """
    if not node.is_target or run.cluster.leaving is not None:
        excuse = await membership.excuse_of(run, node)
        if excuse:
            return TaskResult(changed=False, remark=f"its haproxy stays as it is: {excuse}")
    limit_s = run.timeouts.command + run.timeouts.node_ready
    return await run.session(node).change("balance", values.balance(run.cluster, node), timeout_s=limit_s)


async def quorum(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Choose the master that is taken out next, by what the members of etcd say through the master ``node``."""
    name = run.cluster.name(node)
    try:
        leaving = next_to_heal(run.cluster, await _members(run, about=name))
    except QuorumAtRisk as error:
        raise NodeFailure(f"{error}: heal the other masters first, or the cluster as a whole", node=name) from error
    run.take_out(leaving)
    return TaskResult(changed=False, remark=f"{run.cluster.name(leaving)} is taken out next")


async def stand_down(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Let a master that leaves give the virtual address up, if it still answers."""
    excuse = await membership.excuse_of(run, node)
    if excuse:
        return TaskResult(changed=False, remark=f"it has nothing to give up: {excuse}")
    given = values.common(run.cluster)
    return await run.session(node).change("stand_down", given, timeout_s=run.timeouts.command)


async def remove_member(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Remove the member of etcd on ``node``, by exactly its name and its URL."""
    return await run.master.change(
        "remove_member",
        values.remove_member(run.cluster, node),
        # The virtual address may have to move first, and etcd to choose a leader.
        timeout_s=run.timeouts.command + 2 * run.timeouts.node_ready,
        about=run.cluster.name(node),
    )


async def join_master(run: ClusterRun, node: ManagedNode, earlier: Earlier | None) -> TaskResult:
    """Run ``kubeadm join --control-plane``, with certificates that the master ``run.master`` uploads for this join.

    A machine that loses its power while it joins is forgotten by the others and reset; then it joins again.
    """
    for _ in range(JOIN_TRIES):
        looked = await membership.look_for_join(run, node)
        if looked.joined:
            return TaskResult(changed=looked.changed)
        answer = await _join_as_master(run, node, earlier)
        if answer.joined:
            return TaskResult(changed=answer.changed)
    raise NodeFailure(f"it was interrupted {JOIN_TRIES} times while it joined", node=run.cluster.name(node))


async def _join_as_master(run: ClusterRun, node: ManagedNode, earlier: Earlier | None) -> JoinAnswer:
    cluster, session, limits = run.cluster, run.session(node), run.timeouts
    # First, while the member that an interrupted join has left still runs: of two members, etcd needs both to remove one.
    # After a reset it would count against the majority for ever, and the next join would start as that member, without its data.
    await remove_member(run, node, earlier)
    given = run.as_built(values.join(cluster, node, ca_cert_hash=run.learned.ca_cert_hash, token=""))
    await session.change("reset", given, timeout_s=limits.command + limits.node_ready)
    # kubeadm refuses the name of a Node that was Ready until a moment ago. Last, because a kubelet that runs registers it again.
    await membership.delete(run, node, None)
    # Deleted by kubeadm after two hours: so for each join (sequences.md 1.3, M12).
    certificate_key = run.certificate_key()
    given = run.as_built({**values.init(cluster), "CERTIFICATE_KEY": certificate_key})
    await run.master.change("certificates", given, timeout_s=limits.command, about=cluster.name(node))
    given = values.join(
        cluster,
        node,
        ca_cert_hash=run.learned.ca_cert_hash,
        token=await run.tokens.token(),
        certificate_key=certificate_key,
    )
    return await session.run_script("join", run.as_built(given), timeout_s=limits.node_install, answer=JoinAnswer)


async def member(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Fail unless the member of etcd on a master that has joined was started and answers, as the others see it."""
    name = run.cluster.name(node)
    if not takes_part(await _members(run, about=name), node):
        raise NodeFailure("its member of etcd was not started, or does not answer", node=name)
    return TaskResult(changed=False)


async def _members(run: ClusterRun, *, about: str) -> MembersAnswer:
    return await run.master.run_script(
        "members",
        values.members(run.cluster),
        timeout_s=run.timeouts.command + run.timeouts.node_ready,
        answer=MembersAnswer,
        about=about,
    )
