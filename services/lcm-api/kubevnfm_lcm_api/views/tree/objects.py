"""The Kubernetes objects of a release with their pods. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from kubevnfm_clients.multicloud.inventory import CURRENT, InventoryResource
from kubevnfm_clients.multicloud.object_health import Health, health_of
from kubevnfm_events.objects import ObjectFacts, PodFacts

from kubevnfm_lcm_api.lifecycle.core.drift import Drift, drift_of
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.views.causes.wording import line
from kubevnfm_lcm_api.views.tree.facts import PLACED_KINDS, Placed, TreeFacts
from kubevnfm_lcm_api.views.tree.model import Node
from kubevnfm_lcm_api.views.tree.standing import Standing

K = TypeVar("K")
Key = tuple[str, str | None, str]
_WORKLOADS: Final = frozenset(
    {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod", "VirtualMachine"}
    | {"VirtualMachineInstance", "VirtualMachineInstanceReplicaSet"}
)
_WHAT: Final = {
    "missing": "another party has deleted it",
    "replaced": "another object has its name",
    "changed": "another party has changed it",
}


def release_node(facts: TreeFacts, release: Release, ground: Standing) -> Node:
    """Return the release with its objects, each with its pods."""
    drift = drift_of(facts.record.vnf.metadata)
    pods = list(_pods(facts, release, ground))
    pods_of = _by_object(release.objects, pods)
    marks = {} if drift is None else {_key(each.kind, each.namespace, each.name): each.what for each in drift.objects}
    lost = drift is not None and drift.state == "MISSING"
    children = [
        _object(each, marks, drift, ground, pods_of.pop(_place(each), ()), lost=lost) for each in release.objects
    ]
    children += [node for rest in pods_of.values() for node in rest]
    children += [
        Node(
            kind="hook",
            id=each.uid,
            name=each.name,
            type=each.kind,
            role=each.hook,
            health="ok" if each.has_succeeded else "problem",
            text=None if each.has_succeeded else f"the hook has not succeeded when it ran last, at {each.hook}",
        )
        for each in release.hooks
    ]
    if isinstance(facts.placed, Placed) and facts.placed.are_more:
        children.append(Node(kind="more", name="further pods: /multicloud/v1/inventory/resources", health="unknown"))
    return Node(
        kind="release",
        name=release.namespace,
        type="Namespace",
        state=drift.state if drift is not None else None,
        health="problem" if lost else "ok" if ground.doubt is None else "unknown",
        text=line(drift.reason) if lost and drift is not None else ground.doubt,
        since=drift.since if lost and drift is not None else None,
        vim_id=ground.vim_id,
        children=children,
    )


def unfinished_nodes(facts: TreeFacts) -> Iterator[Node]:
    """Yield what exists of a CNF whose first operation has not ended, by namespace: as the inventory has it, for nothing else is stored."""
    resources = facts.placed.resources if isinstance(facts.placed, Placed) else ()
    for namespace in dict.fromkeys(each.namespace for each in resources):
        there = [each for each in resources if each.namespace == namespace]
        objects = [each for each in there if each.kind not in PLACED_KINDS]
        workloads: dict[tuple[str | None, str], str] = {
            (each.namespace, each.name): each.id for each in objects if each.kind in _WORKLOADS
        }
        pods_of: dict[str | None, list[Node]] = defaultdict(list)
        for each in there:
            if each.kind in PLACED_KINDS:
                pods_of[_by_name(workloads, namespace, each.name)].append(_placed(each, facts.now))
        yield Node(
            kind="release",
            name=namespace or "objects without a namespace",
            type="Namespace",
            health="ok",
            vim_id=there[0].vim_id,
            children=[*(_found(each, pods_of[each.id]) for each in objects), *pods_of[None]],
        )


def _found(each: InventoryResource, pods: list[Node]) -> Node:
    is_current = each.watch == CURRENT
    return Node(
        kind="object",
        id=each.uid,
        name=each.name,
        type=each.kind,
        role=each.vdu_id,
        health="ok" if is_current else "unknown",
        text=None if is_current else _not_watched(each),
        children=pods,
    )


def _not_watched(each: InventoryResource) -> str:
    return line(f"the cluster cannot be watched: {each.watch}. {each.watch_detail}".rstrip(". "))


def _object(
    each: ObjectFacts,
    marks: Mapping[Key, str],
    drift: Drift | None,
    ground: Standing,
    pods: Sequence[Node],
    *,
    lost: bool,
) -> Node:
    what = "missing" if lost else marks.get(_place(each))
    has_problem = what is not None and drift is not None
    return Node(
        kind="object",
        id=each.uid,
        name=each.name,
        type=each.kind,
        role=each.vdu_id,
        state=what,
        health="problem" if has_problem else "ok" if ground.doubt is None else "unknown",
        text=_WHAT[what] if what is not None and has_problem else ground.doubt or _restart(each),
        since=drift.since if has_problem and drift is not None else None,
        children=list(pods),
    )


def _restart(each: ObjectFacts) -> str | None:
    return "a change waits for the next start of the machine" if each.restart_required else None


def _pods(facts: TreeFacts, release: Release, ground: Standing) -> Iterator[tuple[Node, str | None]]:
    """Yield the pods and virtual machines, each with its namespace: as the inventory has them, else as they are stored."""
    # Those of a workload cluster are its machines.
    stored = () if facts.record.internals.workload is not None else release.pods
    if isinstance(facts.placed, Placed) and (facts.placed.resources or not stored):
        yield from ((_placed(each, facts.now), each.namespace) for each in facts.placed.resources)
        return
    known = facts.placed
    doubt = "the inventory has no pods of this VNF" if isinstance(known, Placed) else line(known.reason)
    yield from ((_stored(each, ground.doubt or doubt), each.namespace) for each in stored)


def pod_health(each: InventoryResource, now: datetime) -> tuple[Health, str | None]:
    """Return the health of a pod or virtual machine, and why it is not ``ok``; unknown while its cluster is not watched."""
    if each.watch != CURRENT:
        return "unknown", _not_watched(each)
    health, text = health_of(each, now)
    return health, line(text) or None


def _placed(each: InventoryResource, now: datetime) -> Node:
    health, text = pod_health(each, now)
    return Node(
        kind="pod",
        id=each.uid,
        name=each.name,
        type=each.kind,
        role=each.vdu_id,
        state=each.phase or None,
        health=health,
        text=text,
        since=each.changed_at if health != "ok" else None,
        addresses=list(dict.fromkeys(one for network in each.networks for one in network.addresses)) or None,
        place=each.node or None,
    )


def _stored(each: PodFacts, doubt: str) -> Node:
    return Node(
        kind="pod",
        id=each.uid,
        name=each.name,
        type="Pod",
        role=each.vdu_id,
        health="unknown",
        text=doubt,
        addresses=list(each.addresses) or None,
        place=each.node,
    )


def _by_object(objects: Sequence[ObjectFacts], pods: Iterable[tuple[Node, str | None]]) -> dict[Key | None, list[Node]]:
    """Return the pods by the object that makes them: that of the VDU, or the one whose name theirs begins with; None: no object."""
    of_vdu: dict[str, Key] = {}
    of_name: dict[tuple[str | None, str], Key] = {}
    for each in objects:
        if each.kind in _WORKLOADS:
            of_name[each.namespace, each.name] = _place(each)
        if each.vdu_id is not None:
            of_vdu.setdefault(each.vdu_id, _place(each))
    found: dict[Key | None, list[Node]] = defaultdict(list)
    for node, namespace in pods:
        key = _by_name(of_name, namespace, node.name) or of_vdu.get(node.role or "")
        found[key].append(node)
    return found


def _by_name(of_name: Mapping[tuple[str | None, str], K], namespace: str | None, name: str) -> K | None:
    # web-7d9f-abcde: a pod; web-7d9f: a ReplicaSet; web: the Deployment.
    while name:
        if (namespace, name) in of_name:
            return of_name[namespace, name]
        name = name.rpartition("-")[0]
    return None


def _place(each: ObjectFacts) -> Key:
    return _key(each.kind, each.namespace, each.name)


def _key(kind: str, namespace: str | None, name: str) -> Key:
    return kind, namespace, name
