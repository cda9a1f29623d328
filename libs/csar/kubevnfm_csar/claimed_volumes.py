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
_ALONE: Final = "ReadWriteOncePod"
_READ_ONLY: Final = "ReadOnlyMany"
_MOST_FAULTS: Final = 100

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
    """Yield the volumes whose claims the objects make themselves, or mount in a way that the volumes do not allow."""
    claims = {each.claim_name: (index, each) for index, each in enumerate(order.volumes)}
    namespace = order.namespace or "default"
    replicas = {vdu.name: vdu.replicas for vdu in order.vdus}
    for body in bodies:
        if not isinstance(body, Mapping) or (_at(body, "metadata", "namespace") or namespace) != namespace:
            continue
        name = str(_at(body, "metadata", "name") or "")
        for claim, (index, volume) in claims.items():
            place = f"volumes[{index}]/claim_name"
            if body.get("kind") == _CLAIM and name == claim:
                yield place, f"another name expected: {claim} is a claim of the artifacts"
            elif any(_is_numbered(claim, f"{each}-{name}-") for each in _claim_templates(body)):
                yield place, f"another name expected: StatefulSet {name} of the artifacts makes the claim {claim}"
            yield from ((place, reason) for reason in _mount_faults(body, name, volume, replicas.get(name)))


def _mount_faults(body: Mapping[str, Any], name: str, volume: ClaimedVolume, replicas: int | None) -> Iterator[str]:
    path, modes = _TEMPLATES.get(api_kind(body)), frozenset(volume.access_modes)
    if path is None:
        return
    volumes = _at(body, *path, "spec", "volumes")
    mounts = [_at(each, "persistentVolumeClaim") for each in volumes] if isinstance(volumes, list | tuple) else []
    mine = [each for each in mounts if _at(each, "claimName") == volume.claim_name]
    if mine and modes == {_ALONE} and bears_several(body, replicas):
        yield f"{body.get('kind')} {name} mounts it in more than one pod, and the volume is {_ALONE}"
    if modes == {_READ_ONLY} and any(_at(each, "readOnly") is not True for each in mine):
        yield f"{body.get('kind')} {name} mounts it without readOnly: true, and the volume is {_READ_ONLY}"


def _claim_templates(body: Mapping[str, Any]) -> Sequence[str]:
    found = _at(body, "spec", "volumeClaimTemplates") if body.get("kind") == "StatefulSet" else None
    return [str(_at(each, "metadata", "name")) for each in found] if isinstance(found, list | tuple) else []


def _is_numbered(claim: str, beginning: str) -> bool:
    number = claim.removeprefix(beginning)
    return number != claim and number.isascii() and number.isdigit()


def _at(node: object, *path: str) -> Any:
    for name in path:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node
