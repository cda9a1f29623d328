"""kubectl cordon, uncordon and drain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from kubevnfm_lab.machines.apiclient import MERGE_PATCH, ApiRefusal, Resource
from kubevnfm_lab.machines.programs.call import Exit, Failed
from kubevnfm_lab.machines.programs.kubeadm.config import seconds
from kubevnfm_lab.machines.programs.kubectl.session import Session
from kubevnfm_lab.machines.programs.kubectl.waiting import FOR_EVER_S, until

EVICTION_RETRY_S = 5.0
"""kubectl retries after five seconds an eviction that a disruption budget forbids."""


async def cordon(session: Session) -> Exit:
    """Kubectl cordon."""
    return Exit(0, await _set(session, unschedulable=True))


async def uncordon(session: Session) -> Exit:
    """Kubectl uncordon."""
    return Exit(0, await _set(session, unschedulable=False))


async def _set(session: Session, *, unschedulable: bool) -> str:
    nodes = await session.resource("nodes")
    output = ""
    for word in session.given.words[1:]:
        name = word.removeprefix("node/")
        node = await session.find(nodes, name)
        done = "cordoned" if unschedulable else "uncordoned"
        if bool((node.get("spec") or {}).get("unschedulable")) == unschedulable:
            output += f"node/{name} already {done}\n"
            continue
        # null removes the field, as kubectl's patch does.
        body = {"spec": {"unschedulable": True if unschedulable else None}}
        await session.api.request("PATCH", nodes.path("", name), body=body, content_type=MERGE_PATCH)
        output += f"node/{name} {done}\n"
    return output


async def drain(session: Session) -> Exit:
    """Kubectl drain: cordon, then evict every pod except those of DaemonSets and static ones, all at once."""
    given = session.given
    output = await _set(session, unschedulable=True)
    pods = await session.resource("pods")
    text = given.get("--timeout")
    timeout_s = seconds(text) if text else 0.0
    for word in given.words[1:]:
        name = word.removeprefix("node/")
        listing = await session.api.request("GET", "/api/v1/pods", params={"fieldSelector": f"spec.nodeName={name}"})
        leaving = _leaving(session, name, listing["items"])
        refused: list[str] = []
        # By the pod's place, what kubectl says when the time is over; a pod that has gone is not in it.
        late = {
            _place(pod): f"error when evicting pods {_quoted(pod)}: global timeout reached: {text}" for pod in leaving
        }
        output += "".join(f"evicting pod {_place(pod)}\n" for pod in leaving)
        try:
            async with asyncio.timeout(timeout_s or FOR_EVER_S):
                await asyncio.gather(*(_leave(session, pods, pod, refused.append, late) for pod in leaving))
        except TimeoutError:
            reasons = list(late.values())
            reason = reasons[0] if len(reasons) == 1 else f"[{', '.join(reasons)}]"
            raise Failed(
                "".join(refused)
                + f'error: unable to drain node "{name}" due to error: {reason}, continuing command...\n'
                f"There are pending nodes to be drained:\n {name}\nerror: {reason}",
                stdout=output,
            ) from None
        output += "".join(f"pod/{pod['metadata']['name']} evicted\n" for pod in leaving) + f"node/{name} drained\n"
    return Exit(0, output)


def _leaving(session: Session, node: str, pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    given = session.given
    leaving, daemons, alone, local = [], [], [], []
    for pod in pods:
        owner: dict[str, Any] = next(
            (o for o in pod["metadata"].get("ownerReferences") or [] if o.get("controller")), {}
        )
        # Mirror pods of static manifests cannot be evicted: the kubelet would recreate them.
        if "kubernetes.io/config.mirror" in (pod["metadata"].get("annotations") or {}) or owner.get("kind") == "Node":
            continue
        if owner.get("kind") == "DaemonSet":
            daemons.append(_place(pod))
            continue
        if not owner:
            alone.append(_place(pod))
        if any("emptyDir" in volume for volume in pod["spec"].get("volumes") or []):
            local.append(_place(pod))
        leaving.append(pod)
    complaints = []
    # kubectl collects all complaints before it gives up, and evicts nothing in that case.
    if daemons and not given.has("--ignore-daemonsets"):
        complaints.append(
            f"cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): {', '.join(daemons)}"
        )
    if local and not given.has("--delete-emptydir-data"):
        complaints.append(
            f"cannot delete Pods with local storage (use --delete-emptydir-data to override): {', '.join(local)}"
        )
    if alone and not given.has("--force"):
        complaints.append(
            f"cannot delete Pods that declare no controller (use --force to override): {', '.join(alone)}"
        )
    if complaints:
        raise Failed(
            f'error: unable to drain node "{node}" due to error:[{", ".join(complaints)}], continuing command...'
        )
    return leaving


def _is_another(uid: str, pod: dict[str, Any] | None) -> bool:
    return pod is None or pod["metadata"]["uid"] != uid


def _place(pod: dict[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _quoted(pod: dict[str, Any]) -> str:
    return f'"{pod["metadata"]["name"]}" -n "{pod["metadata"]["namespace"]}"'


async def _leave(
    session: Session, pods: Resource, pod: dict[str, Any], refused: Callable[[str], None], late: dict[str, str]
) -> None:
    await _evict(session, pod, refused)
    # A StatefulSet reuses names, so the end of a pod is recognised by its uid.
    space, name, uid = (pod["metadata"][key] for key in ("namespace", "name", "uid"))
    # Seen with kubectl 1.34: another clock than that of evictions decides for a pod that was evicted.
    late[_place(pod)] = (
        f'error when waiting for pod "{name}" in namespace "{space}" to terminate: context deadline exceeded'
    )
    await until(session, pods, space, name, partial(_is_another, uid), FOR_EVER_S)
    del late[_place(pod)]


async def _evict(session: Session, pod: dict[str, Any], refused: Callable[[str], None]) -> None:
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
    }
    while True:
        try:
            await session.api.request("POST", path, body=body)
        except ApiRefusal as refusal:
            if refusal.status == 404:
                return
            if refusal.status != 429:
                raise
            refused(
                f"error when evicting pods/{_quoted(pod)} (will retry after {EVICTION_RETRY_S:g}s): {refusal.message}\n"
            )
            await asyncio.sleep(EVICTION_RETRY_S)  # the budget may permit it later
        else:
            return
