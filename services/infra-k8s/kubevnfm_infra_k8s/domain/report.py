"""Describes objects that did not become ready, with last condition and newest warning (capi.md CR-025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.readiness import last_condition
from kubevnfm_infra_k8s.domain.together import each_of
from kubevnfm_infra_k8s.domain.verdicts import Verdict

EVENTS: Final = Resource("v1", "Event", "events", namespaced=True)


async def not_ready(cluster: Cluster, verdicts: Mapping[ObjectKey, Verdict], bodies: Mapping[ObjectKey, Body]) -> str:
    """Return one text about all objects that are not ready; without warnings if the cluster does not show events."""
    left = [key for key, verdict in verdicts.items() if not verdict.is_current]
    warnings = await _warnings(cluster, sorted({key.namespace or "default" for key in left}))
    return "; ".join(
        f"{key}: {cluster.masked(describe(key, verdicts[key], bodies.get(key), warnings))}" for key in left
    )


def describe(key: ObjectKey, verdict: Verdict, body: Body | None, warnings: Sequence[Body]) -> str:
    """Return what is known about one object."""
    parts = [verdict.message or verdict.status]
    said = last_condition(body) if body is not None else ""
    if said and said not in parts[0]:
        parts.append(said)
    newest = max((each for each in warnings if _is_about(each, key, body)), key=_age_order, default=None)
    if newest is not None:
        parts.append(f"warning {newest.get('reason', '')}: {newest.get('message', '')}".strip())
    return ", ".join(parts)


def _is_about(event: Body, key: ObjectKey, body: Body | None) -> bool:
    """Return whether the event is about the object, or about an object whose name begins with its name (a pod)."""
    about = event.get("involvedObject") or {}
    if body is not None and about.get("uid") == uid_of(body):
        return True
    is_named = about.get("kind") == key.kind and about.get("name") == key.name
    return is_named or str(about.get("name", "")).startswith(f"{key.name}-")


def _age_order(event: Body) -> tuple[str, int]:
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


async def _warnings(cluster: Cluster, namespaces: Sequence[str]) -> Sequence[Body]:
    async def events_in(namespace: str) -> Sequence[Body]:
        try:
            return await cluster.list(EVENTS, namespace=namespace)
        except VnfmError:  # the report is useful without warnings too
            return []

    return [
        event for events in await each_of(namespaces, events_in) for event in events if event.get("type") == "Warning"
    ]
