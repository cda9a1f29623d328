"""A cluster on the lab's machines as operations on it find it, its pods, and what people do to it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import ManagedNode, RunPhase
from worlds.mgmt_lab import MgmtLab

_SYSTEM_PODS: Final = "/api/v1/namespaces/kube-system/pods"


async def a_named_cluster(lab: MgmtLab, *, workers: int) -> tuple[list[ManagedNode], ClusterAccess]:
    """Return the named nodes of a new cluster, and its access."""
    nodes = await lab.boot_cluster(workers=workers)
    done = await lab.run(lab.command(nodes), operation="op-0", message="m-0")
    assert done.cluster is not None
    lab.news.clear()
    return [node.model_copy(update={"name": done.node_names[node.vnfc_id]}) for node in nodes], done.cluster


def of_phase(
    lab: MgmtLab, phase: Any, nodes: Sequence[ManagedNode], targets: Sequence[ManagedNode], **more: Any
) -> RunPhase:
    """Return the command of a phase that works on the targets; the others are there for reference."""
    chosen = [node.model_copy(update={"is_target": node in targets}) for node in nodes]
    gone = more.pop("gone", ())
    return lab.command(chosen, phase=phase, changes=more).model_copy(update={"gone": tuple(gone)})


async def replaced(lab: MgmtLab, node: ManagedNode, *, host: str = "compute-9") -> ManagedNode:
    """Return the machine that Heat puts in the place of another: at its address, with another id and host key."""
    await lab.machines.destroy(node.server_id)
    assert node.role in ("master", "worker")
    new = await lab.boot(node.role, int(node.nic_address.rpartition(".")[2]), host=host)
    # lcm-api knows by the address whose place it has.
    return new.model_copy(update={"name": node.name})


async def web(lab: MgmtLab, access: ClusterAccess, node: str) -> str:
    """Run a ReplicaSet of one pod, which starts on a node and may move; return the pod's name."""
    others = [name for name in await node_names(lab, access) if name != node]
    for name in others:
        await cordon(lab, access, name, is_on=True)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await send(lab, access, "/apis/apps/v1/namespaces/default/replicasets", {"metadata": {"name": "web"}, "spec": spec})
    found = await running_pod(lab, access, node)
    for name in others:
        await cordon(lab, access, name, is_on=False)
    return found


async def bare(lab: MgmtLab, access: ClusterAccess, node: str) -> None:
    """Run a pod without controller on a node."""
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "nginx"}]}
    await send(lab, access, "/api/v1/namespaces/default/pods", {"metadata": {"name": "bare"}, "spec": spec})
    assert await running_pod(lab, access, node) == "bare"


async def running_pod(lab: MgmtLab, access: ClusterAccess, node: str) -> str:
    """Return the name of the Ready pod of the default namespace on a node, once there is one."""
    async with asyncio.timeout(300):
        while True:
            for one in (await lab.ask_api(access, "/api/v1/namespaces/default/pods"))["items"]:
                if has_ready(one) and one["spec"].get("nodeName") == node:
                    return str(one["metadata"]["name"])
            await asyncio.sleep(0.05)


async def ready(lab: MgmtLab, access: ClusterAccess, node: str) -> None:
    """Return once a Node is Ready."""
    async with asyncio.timeout(300):
        while True:
            if has_ready(await node_of(lab, access, node)):
                return
            await asyncio.sleep(0.05)


async def move_dns(lab: MgmtLab, access: ClusterAccess, node: str) -> None:
    """Let both pods of the cluster's DNS run on this node."""
    others = [one["metadata"]["name"] for one in (await lab.ask_api(access, "/api/v1/nodes"))["items"]]
    others.remove(node)
    for name in others:
        await cordon(lab, access, name, is_on=True)
    for pod in await dns_pods(lab, access):
        await lab.ask_api(access, f"{_SYSTEM_PODS}/{pod['metadata']['name']}", method="DELETE")
    await until_dns(lab, access, node, is_ready=True)
    for name in others:
        await cordon(lab, access, name, is_on=False)


async def until_dns(lab: MgmtLab, access: ClusterAccess, node: str, *, is_ready: bool) -> None:
    """Return once both pods of the cluster's DNS are on this node, and Ready or not."""
    async with asyncio.timeout(300):
        while True:
            found = [
                (one["spec"].get("nodeName"), has_ready(one))
                for one in await dns_pods(lab, access)
                if "deletionTimestamp" not in one["metadata"]
            ]
            if found == [(node, is_ready)] * 2:
                return
            await asyncio.sleep(0.05)


async def dns_pods(lab: MgmtLab, access: ClusterAccess) -> list[dict[str, Any]]:
    """Return the pods of the cluster's DNS."""
    listed = await lab.ask_api(access, f"{_SYSTEM_PODS}?labelSelector=k8s-app%3Dkube-dns")
    return list(listed["items"])


def has_ready(thing: Any) -> bool:
    """Return whether a Node or a pod is Ready."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in thing["status"].get("conditions", ()))


async def node_names(lab: MgmtLab, access: ClusterAccess) -> list[str]:
    """Return the names of the workers."""
    names = [one["metadata"]["name"] for one in (await lab.ask_api(access, "/api/v1/nodes"))["items"]]
    return [name for name in names if name.startswith("worker")]


async def cordon(lab: MgmtLab, access: ClusterAccess, node: str, *, is_on: bool) -> None:
    """Set whether new pods may run on a node, as a person does."""
    body = {"spec": {"unschedulable": True if is_on else None}}
    await lab.ask_api(access, f"/api/v1/nodes/{node}", method="PATCH", body=body)


async def budget(lab: MgmtLab, access: ClusterAccess) -> None:
    """Forbid every eviction of the pods of ``web``."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    body = {"metadata": {"name": "web"}, "spec": spec}
    await send(lab, access, "/apis/policy/v1/namespaces/default/poddisruptionbudgets", body)


async def send(lab: MgmtLab, access: ClusterAccess, path: str, body: Any) -> None:
    """Create an object."""
    await lab.ask_api(access, path, method="POST", body=body)


async def node_of(lab: MgmtLab, access: ClusterAccess, name: str) -> Any:
    """Return a Node, None if there is none."""
    listed = await lab.ask_api(access, "/api/v1/nodes")
    return next((one for one in listed["items"] if one["metadata"]["name"] == name), None)


def hosts_of(lab: MgmtLab, node: ManagedNode) -> list[str]:
    """Return the names of nodes in a machine's hosts file."""
    text = (lab.machine(node).root / "etc/hosts").read_text()
    block = text.partition("# kubevnfm begin\n")[2].partition("# kubevnfm end")[0]
    return [line.split()[1] for line in block.splitlines()]
