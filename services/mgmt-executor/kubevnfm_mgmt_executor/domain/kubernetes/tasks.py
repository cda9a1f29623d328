"""The tasks on a node, and their table. A new task is a function here and a row at the end.

A task looks at its machine first and does only what is missing: it runs again after a crash, a retry, and when a
message is delivered twice. ``earlier`` is the journal's record of the try before, None when this try is the first.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from kubevnfm_mgmt_executor.domain.kubernetes import helm, masters, membership, registries, storage, values
from kubevnfm_mgmt_executor.domain.kubernetes.answers import (
    AdminAnswer,
    InitAnswer,
    JoinAnswer,
    PrepareAnswer,
    VerifyAnswer,
)
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.kuryr import tasks as kuryr
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, TaskResult

NodeWork = Callable[[ClusterRun, ManagedNode, Earlier | None], Awaitable[TaskResult]]


# --- any machine ------------------------------------------------------------------------------------------------------


async def reach(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Open a session, and wait for the machine to boot if it must."""
    node_id = NodeId(node.vnfc_id, run.cluster.name(node))
    await run.session(node).reach(partial(run.tools.recorder.progress, node_id, "reach"))
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
        "prepare",
        run.as_built(values.prepare(run.cluster, node)),
        timeout_s=run.timeouts.node_install,
        answer=PrepareAnswer,
    )
    facts = {} if answer.kubernetes_version is None else {"kubernetes_version": answer.kubernetes_version}
    return TaskResult(changed=answer.changed, facts=facts)


# --- a master ---------------------------------------------------------------------------------------------------------


async def init(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Run ``kubeadm init``; learn the cluster's CA."""
    # Also if the journal says `done`: the joins need the CA, and only the script's answer has it.
    answer = await run.session(node).run_script(
        "init", values.init(run.cluster), timeout_s=run.timeouts.node_install, answer=InitAnswer
    )
    run.learn_ca(answer.ca_cert)
    return TaskResult(changed=answer.changed, facts={"ca_cert_hash": run.learned.ca_cert_hash})


async def network(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Apply the pod network's manifest and wait for its workloads."""
    # The script waits for one workload after the other, for each up to node_ready.
    rollouts_s = len(run.files.network_workloads) * run.timeouts.node_ready
    given, limit_s = values.network(run.cluster, run.files), run.timeouts.command + rollouts_s
    return await run.session(node).change("network", given, timeout_s=limit_s)


async def admin(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Make the service account by which the cluster is registered as a VIM; learn its token."""
    learned, name = run.learned, run.cluster.name(node)
    answer = await run.session(node).run_script(
        "admin",
        {**values.init(run.cluster), "CERTIFICATE_KEY": run.certificate_key()},
        # node_ready is for the token, which a controller writes into the Secret after the Secret was created.
        timeout_s=2 * run.timeouts.command + run.timeouts.node_ready,
        answer=AdminAnswer,
    )
    try:
        learned.admin_token = base64.b64decode(answer.token_base64, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise NodeFailure("the admin token is not base64 text", node=name) from error
    # An empty text is valid base64, and a VIM registered without a token would fail much later.
    if not learned.admin_token:
        raise NodeFailure("the install script returned no admin token", node=name)
    run.tools.mask.add(learned.admin_token)
    return TaskResult(changed=answer.changed)


# --- workers, and the cluster as a whole ------------------------------------------------------------------------------


async def join(run: ClusterRun, node: ManagedNode, earlier: Earlier | None) -> TaskResult:
    """Run ``kubeadm join``, with a bootstrap token that is made when the first node needs one."""
    session, ca_cert_hash = run.session(node), run.learned.ca_cert_hash
    if earlier is not None:
        # An earlier try may have succeeded. For a node that is a member no token is made.
        looked = await membership.look_for_join(run, node)
        if looked.joined:
            return TaskResult(changed=looked.changed)
    token = await run.tokens.token()
    answer = await session.run_script(
        "join",
        run.as_built(values.join(run.cluster, node, ca_cert_hash=ca_cert_hash, token=token)),
        timeout_s=run.timeouts.node_install,
        answer=JoinAnswer,
    )
    return TaskResult(changed=answer.changed)


async def label(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Label the new workers with their compute hosts and zones, through the master ``node``."""
    if not run.labels["LABELS"]:
        return TaskResult(changed=False)
    # A kubelet registers its node only after it has received its certificate, so kubectl may have to wait for it.
    timeout_s = run.timeouts.command + run.timeouts.node_ready
    return await run.session(node).change("label", run.labels, timeout_s=timeout_s)


async def verify(run: ClusterRun, node: ManagedNode, _: Earlier | None) -> TaskResult:
    """Wait until every new node is Ready, seen from the master ``node``; learn their uids and the version."""
    cluster, name = run.cluster, run.cluster.name(node)
    new = {one.vnfc_id: cluster.name(one) for one in cluster.nodes if one.is_target}
    answer = await run.session(node).run_script(
        "verify",
        values.verify(cluster, run.files),
        # The script waits until the nodes are registered, until they are Ready, for kube-proxy and for CoreDNS, and for
        # each workload of the pod network.
        timeout_s=run.timeouts.command + (4 + len(run.files.network_workloads)) * run.timeouts.node_ready,
        answer=VerifyAnswer,
    )
    found = {item.metadata.name: item for item in answer.nodes.items}
    # The list is read after these waits: a node may have stopped being Ready since.
    unready = [one for one in new.values() if one not in found or not found[one].is_ready]
    if unready:
        raise NodeFailure(f"not Ready: {', '.join(sorted(unready))}", node=name)
    run.learned.version = found[name].status.node_info.kubelet_version
    # The uid distinguishes a node from an older one with the same name.
    uids = {vnfc_id: found[one].metadata.uid for vnfc_id, one in new.items()}
    return TaskResult(facts={"node_uids": uids, "kubernetes_version": run.learned.version})


TASKS: Final[Mapping[str, NodeWork]] = {
    "reach": reach,
    "copy": copy,
    "prepare": prepare,
    "init": init,
    "network": network,
    "admin": admin,
    "join": join,
    "label": label,
    "verify": verify,
    "facts": membership.facts,
    "hosts": membership.hosts,
    "cordon": membership.cordon,
    "uncordon": membership.uncordon,
    "drain": membership.drain,
    "delete": membership.delete,
    "registries": registries.registries,
    "clear": membership.clear,
    "disks": storage.disks,
    "exports": storage.exports,
    "nfs_client": storage.nfs_client,
    "register_volumes": storage.register_volumes,
    "release_volumes": storage.release_volumes,
    "etcd": kuryr.etcd,
    "kuryr": kuryr.kuryr,
    "entry": kuryr.entry,
    "withdraw": kuryr.withdraw,
    "balance": masters.balance,
    "quorum": masters.quorum,
    "stand_down": masters.stand_down,
    "remove_member": masters.remove_member,
    "join_master": masters.join_master,
    "member": masters.member,
    "helm": helm.helm,
}
"""Task by the name that journal, progress and logs store: a function may be renamed, a name never."""
