"""The checks of requests for volumes (multicloud.md chapter 13, "Bad input")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import structlog
from kubevnfm_clients.multicloud.volumes import VolumeRequest
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_infra_k8s.domain.objects import MANAGED_BY, ObjectKey
from kubevnfm_infra_k8s.domain.planning.cnf_policy import Rules
from kubevnfm_infra_k8s.domain.planning.pod_security import Level
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.quantities import bytes_of
from kubevnfm_infra_k8s.domain.reconciling.permitted import reserved
from kubevnfm_infra_k8s.domain.volumes.bodies import SOURCES
from kubevnfm_infra_k8s.domain.volumes.bringing import CLASSES
from kubevnfm_infra_k8s.domain.volumes.record import Volume

Fault = tuple[str, str]
_ALONE: Final = "ReadWriteOncePod"

log = structlog.get_logger()


def check_request(request: VolumeRequest) -> None:
    """Raise Unprocessable with each wrong place of a request."""
    _raise(list(_faults(request)))


def _faults(request: VolumeRequest) -> Iterator[Fault]:
    if (request.storage_class is None) == (request.source is None):
        yield "storage_class", "exactly one of storage_class and source expected"
        yield "source", "exactly one of storage_class and source expected"
    if request.source is not None:
        given = [name for name in SOURCES if getattr(request.source, name) is not None]
        if len(given) != 1:
            yield "source", f"exactly one of {', '.join(SOURCES)} expected"
        if request.reclaim == "Delete":
            yield "reclaim", "Retain expected with a source: no provisioner owns its data"
    if not request.access_modes:
        yield "access_modes", "at least one mode expected"
    elif len(set(request.access_modes)) != len(request.access_modes):
        yield "access_modes", "each mode once expected"
    elif _ALONE in request.access_modes and len(request.access_modes) > 1:
        yield "access_modes", f"{_ALONE} alone expected: Kubernetes takes no other mode beside it"
    yield from _label_faults(request.labels)
    try:
        bytes_of(request.size)
    except ValueError as error:
        yield "size", str(error)


def check_policy(request: VolumeRequest, rules: Rules) -> None:
    """Raise Unprocessable for a directory of a node that the operator's policy for CNFs forbids."""
    if request.source is None or request.source.local is None or rules.pod_security is Level.PRIVILEGED:
        return
    what = f"pods of level {rules.pod_security} may have no directory of a node (docs/cnf-policy.md)"
    if rules.mode == "strict":
        raise Unprocessable("source/local", f"another source expected: {what}")
    log.warning("cnf_policy_violated", mode=rules.mode, volume=request.name, what=what)


def check_labels(labels: Mapping[str, str]) -> None:
    """Raise Unprocessable for labels that kubevnfm writes."""
    _raise(list(_label_faults(labels)))


def _label_faults(labels: Mapping[str, str]) -> Iterator[Fault]:
    own = [*reserved(labels), *(MANAGED_BY.keys() & labels.keys())]
    if own:
        yield "labels", f"other names expected: kubevnfm writes {', '.join(own)}"


async def check_class(cluster: Cluster, request: VolumeRequest) -> None:
    """Raise Unprocessable if the region has not the class."""
    if request.storage_class is not None and await _allows_growth(cluster, request.storage_class) is None:
        raise Unprocessable("storage_class", f"the region has no StorageClass {request.storage_class}")


def check_growth(volume: Volume, size: str) -> bool:
    """Return whether a size is larger than the one that the volume has. Raises Unprocessable for one that shrinks, or is none."""
    try:
        wanted = bytes_of(size)
    except ValueError as error:
        raise Unprocessable("size", str(error)) from error
    present = bytes_of(volume.size)
    if wanted < present:
        raise Unprocessable("size", f"at least {volume.size} expected: a volume does not shrink")
    if wanted > present and volume.storage_class is None:
        raise Unprocessable("size", "a volume without a storage class does not grow")
    return wanted > present


async def check_expansion(cluster: Cluster, storage_class: str) -> None:
    """Raise Unprocessable if volumes of the class do not grow."""
    if not await _allows_growth(cluster, storage_class):
        raise Unprocessable("size", f"StorageClass {storage_class} does not allow expansion")


async def _allows_growth(cluster: Cluster, storage_class: str) -> bool | None:
    """Return whether volumes of a class may grow; None if there is no such class."""
    found = await cluster.get(CLASSES, ObjectKey(CLASSES.api_version, CLASSES.kind, "", storage_class))
    return None if found is None else found.get("allowVolumeExpansion") is True


def _raise(faults: Sequence[Fault]) -> None:
    if faults:
        raise Unprocessable(*faults[0], *faults[1:])
