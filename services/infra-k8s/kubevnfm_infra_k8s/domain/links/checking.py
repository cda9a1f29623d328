"""The checks of a new link against its region: what is served, and the links that are there. No I/O but discovery."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from kubevnfm_clients.multicloud.errors import RegionLacks
from kubevnfm_clients.multicloud.links import LinkRequest
from kubevnfm_kit.errors import ConflictingInput, Unprocessable

from kubevnfm_infra_k8s.domain.links.record import Link, differences
from kubevnfm_infra_k8s.domain.links.spec import LinkSpec, Places
from kubevnfm_infra_k8s.domain.links.subnets import overlaps_with
from kubevnfm_infra_k8s.domain.objects import NAMESPACES, PRIMARY_NETWORK_LABEL, Body, ObjectKey, labels_of
from kubevnfm_infra_k8s.domain.ports import Cluster

_MOST_SHOWN: Final = 200


async def check_served(cluster: Cluster, region: str, spec: LinkSpec, sriov_namespace: str) -> None:
    """Raise RegionLacks if the region does not serve a kind that the link needs, or has no operator (MC-090)."""
    if [kind for kind, _ in spec.kinds() if await cluster.resource(*kind) is None]:
        # Its definition may have been installed since discovery was read.
        cluster.forget_kinds()
    faults = [
        (place, f"region {region} lacks {spec.lacks}: it does not serve {kind} ({api_version})")
        for (api_version, kind), place in spec.kinds()
        if await cluster.resource(api_version, kind) is None
    ]
    if not faults and spec.uses_operator and await namespace(cluster, sriov_namespace) is None:
        faults = [
            ("spec/operator", f"region {region} lacks the SR-IOV network operator: no namespace {sriov_namespace}")
        ]
    if faults:
        raise RegionLacks(*faults[0], *faults[1:])


async def check_places(cluster: Cluster, spec: LinkSpec, name: str, places: Places) -> None:
    """Raise Unprocessable if an object as given lacks the namespace that its kind needs, or has one too many."""
    faults: list[tuple[str, str]] = []
    for index, each in enumerate(spec.objects(name, places)):
        resource = await cluster.resource(str(each.body["apiVersion"]), str(each.body["kind"]))
        has_namespace = bool(each.body["metadata"].get("namespace"))
        if resource is None or resource.namespaced == has_namespace:
            continue
        wanted = "a namespace expected" if resource.namespaced else "no namespace expected: the kind has none"
        faults.append((f"spec/objects[{index}]/metadata/namespace", wanted))
    if faults:
        raise Unprocessable(*faults[0], *faults[1:])


def check_namespaces(spec: LinkSpec, namespaces: Sequence[str]) -> None:
    """Raise Unprocessable if the type cannot serve these namespaces together (MC-093)."""
    most = spec.most_namespaces
    if most is not None and len(namespaces) > most:
        raise Unprocessable("namespaces", f"up to {most} expected for all users, got {', '.join(namespaces)}")


async def check_primary(cluster: Cluster, namespaces: Sequence[str]) -> None:
    """Raise Unprocessable for a namespace that was not created for a primary network (MC-093)."""
    for each in namespaces:
        there = await namespace(cluster, each)
        if there is not None and PRIMARY_NETWORK_LABEL not in labels_of(there):
            raise Unprocessable("namespaces", f"namespace {each} was created without the label {PRIMARY_NETWORK_LABEL}")


async def namespace(cluster: Cluster, name: str) -> Body | None:
    """Return a namespace."""
    return await cluster.get_metadata(NAMESPACES, ObjectKey("v1", "Namespace", "", name))


def check_free(request: LinkRequest, spec: LinkSpec, others: Sequence[Link]) -> None:
    """Raise ConflictingInput for a subnet or VLAN that another link of the region has (MC-091, MC-095)."""
    faults: list[tuple[str, str]] = []
    own = spec.subnets()
    for other in others:
        theirs = other.read_spec()
        faults += [
            ("spec", f"a free VLAN expected: link {other.name} ({other.id}) has VLAN {vlan} on {interface}")
            for interface, vlan in set(spec.vlans()) & set(theirs.vlans())
        ]
        if request.allow_overlap:
            continue
        faults += [
            (
                f"spec/{place}",
                f"overlaps with {taken} of link {other.name} ({other.id}); allow_overlap: true permits it",
            )
            for place, taken in overlaps_with(own, [network for _, network in theirs.subnets()])
        ]
    if faults:
        raise ConflictingInput(*faults[0], *faults[1:])


def check_same(request: LinkRequest, there: Link) -> None:
    """Raise ConflictingInput with the members in which a request differs from the link of its name (MC-084)."""
    if request.type != there.type:
        raise ConflictingInput("type", f"the link {there.name} ({there.id}) has the type {there.type}")
    found = differences(there.spec, request.spec)
    if found:
        faults = [
            (each.place, f"the link has {_short(each.there)}, and the request {_short(each.given)}") for each in found
        ]
        raise ConflictingInput(*faults[0], *faults[1:])


def _short(value: object) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
