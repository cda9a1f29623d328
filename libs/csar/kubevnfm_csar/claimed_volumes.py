"""The claims of persistent volumes that a VNF uses, checked against its manifests (multicloud.md chapter 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_events.objects import ClaimedVolume, ObjectsOrder
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_csar.networked_workloads import bears_several
from kubevnfm_csar.pod_templates import MACHINE_TEMPLATES, POD_TEMPLATES, api_kind

_TEMPLATES: Final = {**POD_TEMPLATES, **MACHINE_TEMPLATES}
_CLAIM: Final = "PersistentVolumeClaim"
ALONE: Final = "ReadWriteOncePod"
"""The access mode of a volume that one pod can mount."""
_READ_ONLY: Final = "ReadOnlyMany"
_KEEP_PODS: Final = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
_MOST_FAULTS: Final = 100
_DIGITS: Final = "0123456789"

Fault = tuple[str, str]
"""A place of the request, and what was expected there."""


def check_claims(bodies: Sequence[object], order: ObjectsOrder, *, place: str | None = None) -> None:
    """Check the claims of volumes against the objects of an order. Raises Unprocessable naming all wrong places.

    ``place``: the one to name, if the request does not have the volumes.
    """
    faults = [(place or each, reason) for each, reason in _claim_faults(bodies, order)] if order.volumes else []
    if faults:
        raise Unprocessable(*faults[0], *faults[1:_MOST_FAULTS])


def _claim_faults(bodies: Sequence[object], order: ObjectsOrder) -> Iterator[Fault]:
    """Yield the volumes whose claims the objects make themselves, or mount in a way that the volumes do not allow.

    Each object is checked once, however many volumes there are.
    """
    claims = {each.claim_name: (f"volumes[{index}]/claim_name", each) for index, each in enumerate(order.volumes)}
    numbered: dict[str, list[str]] = {}
    for claim in claims:
        if claim[-1:].isdigit():
            numbered.setdefault(claim.rstrip(_DIGITS), []).append(claim)
    namespace = order.namespace or "default"
    replicas = {vdu.name: vdu.replicas for vdu in order.vdus}
    alone: dict[str, str] = {}
    for body in bodies:
        if not isinstance(body, Mapping) or (_at(body, "metadata", "namespace") or namespace) != namespace:
            continue
        name = str(_at(body, "metadata", "name") or "")
        if body.get("kind") == _CLAIM and name in claims:
            yield claims[name][0], f"another name expected: {name} is a claim of the artifacts"
        for beginning in sorted(numbered.keys() & {f"{each}-{name}-" for each in _claim_templates(body)}):
            for claim in numbered[beginning]:
                reason = f"another name expected: StatefulSet {name} of the artifacts makes the claim {claim}"
                yield claims[claim][0], reason
        for claim, is_read_only in mounted_claims(body).items():
            if claim in claims:
                place, volume = claims[claim]
                reasons = _mount_faults(body, name, volume, replicas.get(name), is_read_only=is_read_only)
                yield from ((place, reason) for reason in reasons)
                if set(volume.access_modes) == {ALONE} and _has_one_pod(body, replicas.get(name)):
                    workload = f"{body.get('kind')} {name}"
                    first = alone.setdefault(claim, workload)
                    if first != workload:
                        yield place, f"{first} and {workload} mount it, each in a pod, and the volume is {ALONE}"


def mounted_claims(body: Mapping[str, Any]) -> Mapping[str, bool]:
    """Return the claims that the pods of an object mount, each with whether they all do so read-only."""
    path = _TEMPLATES.get(api_kind(body))
    volumes = None if path is None else _at(body, *path, "spec", "volumes")
    mounts: dict[str, bool] = {}
    for each in volumes if isinstance(volumes, list | tuple) else ():
        claim = _at(each, "persistentVolumeClaim", "claimName")
        if isinstance(claim, str):
            mounts[claim] = mounts.get(claim, True) and _at(each, "persistentVolumeClaim", "readOnly") is True
    return mounts


def _mount_faults(
    body: Mapping[str, Any], name: str, volume: ClaimedVolume, replicas: int | None, *, is_read_only: bool
) -> Iterator[str]:
    modes = frozenset(volume.access_modes)
    if modes == {ALONE} and bears_several(body, replicas):
        yield f"{body.get('kind')} {name} mounts it in more than one pod, and the volume is {ALONE}"
    if modes == {_READ_ONLY} and not is_read_only:
        yield f"{body.get('kind')} {name} mounts it without readOnly: true, and the volume is {_READ_ONLY}"


def _has_one_pod(body: Mapping[str, Any], replicas: int | None) -> bool:
    """Return whether a workload keeps a pod for as long as it exists; one of a Job ends, and others may come after it."""
    count = replicas if replicas is not None else _at(body, "spec", "replicas")
    return body.get("kind") in _KEEP_PODS and count in (None, 1)


def _claim_templates(body: Mapping[str, Any]) -> Sequence[str]:
    found = _at(body, "spec", "volumeClaimTemplates") if body.get("kind") == "StatefulSet" else None
    return [str(_at(each, "metadata", "name")) for each in found] if isinstance(found, list | tuple) else []


def _at(node: object, *path: str) -> Any:
    for name in path:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node
