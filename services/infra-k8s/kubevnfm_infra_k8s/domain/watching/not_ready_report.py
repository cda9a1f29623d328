"""Describes objects that did not become ready, with last condition and newest warning (capi.md CR-025)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.printable import printable

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.reading.instance_facts import running_parts
from kubevnfm_infra_k8s.domain.reading.readiness import last_condition
from kubevnfm_infra_k8s.domain.reading.vdus import owned_parts, owner_uid
from kubevnfm_infra_k8s.domain.verdicts import Verdict

_BEFORE_START: Final = ("FailedScheduling", "FailedAttachVolume", "FailedMount", "FailedCreatePodSandBox")
_OVER: Final[Mapping[str, Sequence[str]]] = {
    "Scheduled": ("FailedScheduling",),
    **dict.fromkeys(("Pulling", "Pulled", "Created", "Started"), _BEFORE_START),
}
"""By the reason of an event about a pod: the reasons of warnings before it that no longer hold."""
EVENTS: Final = Resource("v1", "Event", "events", namespaced=True)


async def not_ready(
    cluster: Cluster, vnf_instance_id: str, verdicts: Mapping[ObjectKey, Verdict], bodies: Mapping[ObjectKey, Body]
) -> str:
    """Return one text about all objects that are not ready; without warnings if the cluster does not show events."""
    left = [key for key, verdict in verdicts.items() if not verdict.is_current]
    events = await events_in(cluster, sorted({key.namespace or "default" for key in left}))
    warnings = open_warnings(events)
    made = await _made_by(cluster, vnf_instance_id, {key: bodies[key] for key in left if key in bodies})
    return "; ".join(
        f"{key}: {cluster.masked(printable(describe(key, verdicts[key], bodies.get(key), warnings, made.get(key, ()))))}"
        for key in left
    )


async def _made_by(
    cluster: Cluster, vnf_instance_id: str, workloads: Mapping[ObjectKey, Body]
) -> Mapping[ObjectKey, Collection[str]]:
    """Return the uids of the pods and ReplicaSets of each workload."""
    by_uid = {uid_of(body): key for key, body in workloads.items()}
    try:
        found = await running_parts(cluster, vnf_instance_id, [key for key in workloads if key.namespace])
    except VnfmError:  # the report is useful without their warnings too
        return {}
    made: dict[ObjectKey, set[str]] = {key: set() for key in workloads}
    for replica_set in found.replica_sets:
        if owner_uid(replica_set) in by_uid:
            made[by_uid[owner_uid(replica_set)]].add(uid_of(replica_set))
    for pod, owner in owned_parts(by_uid, found):
        made[by_uid[owner]].add(uid_of(pod))
    return made


def describe(
    key: ObjectKey, verdict: Verdict, body: Body | None, warnings: Sequence[Body], made: Collection[str] = ()
) -> str:
    """Return what is known about one object; ``made``: the uids of its pods and ReplicaSets."""
    parts = [verdict.message or verdict.status]
    said = last_condition(body) if body is not None else ""
    if said and said not in parts[0]:
        parts.append(said)
    newest = max((each for each in warnings if _is_about(each, key, body, made)), key=age_order, default=None)
    if newest is not None:
        parts.append(f"warning {newest.get('reason', '')}: {newest.get('message', '')}".strip())
    return ", ".join(parts)


def _is_about(event: Body, key: ObjectKey, body: Body | None, made: Collection[str]) -> bool:
    """Return whether the event is about the object, or about a pod of it."""
    about = event.get("involvedObject") or {}
    if about.get("uid") in made or (body is not None and about.get("uid") == uid_of(body)):
        return True
    return bool(about.get("kind") == key.kind and about.get("name") == key.name)


def age_order(event: Body) -> tuple[str, int]:
    """Return the sort key for events: the time, then the length of the message."""
    # Times are in seconds, and of two events in the same second the longer message is more useful.
    time = str(
        field_at(event, "series", "lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or field_at(event, "metadata", "creationTimestamp")
        or ""
    )
    return time, len(str(event.get("message") or ""))


def open_warnings(events: Sequence[Body]) -> Sequence[Body]:
    """Return the warnings, in the same order, without those that a pod has got over: it was placed or started later."""
    over: dict[tuple[str, str], str] = {}
    for event in events:
        for reason in _OVER.get(str(event.get("reason")), ()):
            key = _about(event), reason
            over[key] = max(over.get(key, ""), _second(event))
    return [
        event
        for event in events
        if event.get("type") == "Warning" and _second(event) > over.get((_about(event), str(event.get("reason"))), "")
    ]


def _about(event: Body) -> str:
    return str(field_at(event, "involvedObject", "uid"))


def _second(event: Body) -> str:
    # Some components write fractions of seconds.
    return age_order(event)[0].removesuffix("Z")[:19]


async def events_in(cluster: Cluster, namespaces: Sequence[str]) -> Sequence[Body]:
    """Return the events of namespaces; none of one whose events cannot be read."""

    async def events_of(namespace: str) -> Sequence[Body]:
        try:
            return await cluster.list(EVENTS, namespace=namespace)
        except VnfmError:  # the report is useful without events too
            return []

    return [event for events in await each_of(namespaces, events_of) for event in events]
