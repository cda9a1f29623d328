"""Reads the usage of pods from the API group ``metrics.k8s.io``, with the limits that it is a part of.

metrics-server answers with the quantities of each container. Another program may serve the group, or the cluster may be hostile:
what cannot be read of a pod is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from cachetools import TTLCache
from kubevnfm_clients.multicloud.errors import ResourceMetricsUnavailable
from kubevnfm_clients.pod_usages import PodsInUse, PodUsage
from kubevnfm_clients.ports import VimDirectory

from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import GroupUnavailable, ObjectRefused
from kubevnfm_infra_k8s.domain.objects import INSTANCE_LABEL, NODES, PODS, Body, ObjectKey, field_at, name_of
from kubevnfm_infra_k8s.domain.ports import Cluster, Clusters
from kubevnfm_infra_k8s.domain.quantities import number_of

_GROUP: Final = ("metrics.k8s.io/v1beta1", "PodMetrics")
_NONE: Final = "the cluster has no metrics.k8s.io (metrics-server)"
_MOST_NODES: Final = 10_000
_NODE_KEPT_S: Final = 600.0
"""The memory of a node changes only with its machine."""
_WINDOW: Final = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6}(?:\.[0-9]{1,9})?)s)?")
"""A duration as Go writes it: ``15.2s``, ``1m0s``."""
_RESTARTED: Final = "Always"
"""The restart policy of an initial container that runs beside the others."""


@dataclass(frozen=True)
class ClusterPodUsages:
    """`kubevnfm_clients.pod_usages.PodUsages`."""

    clusters: Clusters
    vims: VimDirectory
    _memory: TTLCache[tuple[str, str], float] = field(default_factory=lambda: TTLCache(_MOST_NODES, ttl=_NODE_KEPT_S))
    """Bytes by the endpoint of the cluster and the name of the node."""

    async def read(self, wanted: PodsInUse) -> Sequence[PodUsage]:
        vim = await self.vims.connection(wanted.vim)
        async with self.clusters.cluster(vim) as cluster:
            labels = f"{INSTANCE_LABEL}={wanted.vnf_instance_id}"
            measured = await _measured(cluster, wanted.namespace, labels)
            shown = await _shown(cluster, wanted.namespace, labels)
            names = [each for each in dict.fromkeys(wanted.pods) if each in measured]
            memory = await self._memory_of_nodes(cluster, [shown[each] for each in names if each in shown])
        found = (usage_of(each, measured[each], shown.get(each, {}), memory) for each in names)
        return [each for each in found if each is not None]

    async def _memory_of_nodes(self, cluster: Cluster, pods: Iterable[Body]) -> Mapping[str, float]:
        """Return the memory of the nodes of those pods that have no limit of it, by name, as far as it is known."""
        without = [each for each in pods if _limit(each, "memory") is None]
        named = {str(name) for each in without if (name := field_at(each, "spec", "nodeName"))}
        unknown = sorted(name for name in named if (cluster.endpoint, name) not in self._memory)
        for name, size in zip(
            unknown, await each_of(unknown, lambda name: _memory_of_node(cluster, name)), strict=True
        ):
            if size is not None:
                self._memory[cluster.endpoint, name] = size
        known = ((name, self._memory.get((cluster.endpoint, name))) for name in named)
        return {name: size for name, size in known if size is not None}


async def _measured(cluster: Cluster, namespace: str, labels: str) -> Mapping[str, Body]:
    """Return the measurements by name of the pod. Raises ResourceMetricsUnavailable."""
    try:
        resource = await cluster.resource(*_GROUP)
        if resource is None:
            raise ResourceMetricsUnavailable(_NONE)
        return {name_of(each): each for each in await cluster.list(resource, namespace=namespace, labels=labels)}
    except GroupUnavailable as error:
        raise ResourceMetricsUnavailable(f"{_NONE}: {error}") from error


async def _shown(cluster: Cluster, namespace: str, labels: str) -> Mapping[str, Body]:
    """Return the pods by name; none if the credentials permit no list: then their limits are not known."""
    try:
        return {name_of(each): each for each in await cluster.list(PODS, namespace=namespace, labels=labels)}
    except ObjectRefused as refusal:
        if refusal.http_status == 403:
            return {}
        raise


async def _memory_of_node(cluster: Cluster, name: str) -> float | None:
    try:
        node = await cluster.get(NODES, ObjectKey("v1", "Node", "", name))
    except ObjectRefused:
        return None  # few credentials permit it
    return _amount(field_at(node, "status", "capacity", "memory")) or None


def usage_of(name: str, measured: Body, pod: Body, memory_by_node: Mapping[str, float]) -> PodUsage | None:
    """Return the usage of a pod; None if the measurement has no time or no value that can be read."""
    at = _moment(measured.get("timestamp"))
    used = {each: _sum_of(measured.get("containers"), "usage", each) for each in ("cpu", "memory")}
    if at is None or used == {"cpu": None, "memory": None}:
        return None
    node = str(field_at(pod, "spec", "nodeName") or "")
    return PodUsage(
        pod=name,
        at=at,
        window_s=_seconds(measured.get("window")),
        **used,
        cpu_limit=_limit(pod, "cpu"),
        memory_limit=_limit(pod, "memory") or memory_by_node.get(node),
    )


def _limit(pod: Body, resource: str) -> float | None:
    """Return the sum of the limits of the containers that run; None if none has one."""
    initial = field_at(pod, "spec", "initContainers") or []
    beside = [each for each in initial if each.get("restartPolicy") == _RESTARTED]
    return _sum_of([*(field_at(pod, "spec", "containers") or []), *beside], "resources", "limits", resource) or None


def _sum_of(containers: object, *path: str) -> float | None:
    """Return the sum of the quantities that containers have at a path; None if none has one."""
    found = [_amount(field_at(each, *path)) for each in containers] if isinstance(containers, list) else []
    known = [each for each in found if each is not None]
    return sum(known) if known else None


def _amount(quantity: object) -> float | None:
    try:
        return float(number_of(quantity))
    except ValueError:
        return None


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) and len(text) <= 64 else None
        return moment.astimezone(UTC) if moment is not None and moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _seconds(window: object) -> float:
    found = _WINDOW.fullmatch(window) if isinstance(window, str) else None
    hours, minutes, seconds = (float(each or 0) for each in found.groups()) if found is not None else (0.0, 0.0, 0.0)
    return hours * 3600 + minutes * 60 + seconds
