"""Whether the nodes of a cloud region have what compute profiles ask for (multicloud.md MC-070, MC-120)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from heapq import nlargest
from itertools import islice, takewhile
from typing import Final

from kubevnfm_clients.multicloud.compute_profiles import AffinityTermRequest, ComputeProfileRequest
from kubevnfm_clients.multicloud.region_views import FEATURE, RegionFeatures
from kubevnfm_clients.multicloud.regions import CloudRegion, CloudRegions, ObjectsWanted
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_pointer import escaped

_MOST_COMPARED: Final = 20
"""The labels, of those that begin alike, among which the nearest ones are looked for."""
_MOST_FAULTS: Final = 100

Fault = tuple[str, str]


async def check_profiles(regions: CloudRegions, region: CloudRegion, profiles: Sequence[ComputeProfileRequest]) -> None:
    """Raise Unprocessable for what the region lacks: nodes with the features, classes of devices, classes of runtimes.

    Only labels of Node Feature Discovery are compared; a pod that waits for others is named by the operation.
    Raises also RegionUnavailable.
    """
    key = region.cloud_owner, region.cloud_region
    faults = await _unknown_runtimes(regions, key, profiles)
    if any(each.check_features and (_terms(each) or each.resource_claims) for each in profiles):
        features = await regions.features(*key)
        # In a thread, and bounded: a region may have some thousand nodes and labels, and a request some thousand conditions.
        faults += await asyncio.to_thread(lambda: list(islice(feature_faults(features, profiles), _MOST_FAULTS)))
    if faults:
        raise Unprocessable(*faults[0], *faults[1:])


def feature_faults(features: RegionFeatures, profiles: Sequence[ComputeProfileRequest]) -> Iterator[Fault]:
    """Yield what no node of the region has, and the classes of devices that it does not know."""
    for index, profile in enumerate(profiles):
        if not profile.check_features:
            continue
        place = f"compute_profiles[{index}]"
        terms = _terms(profile)
        if terms and not any(all(_holds(term, node.labels) for _, term in terms) for node in features.nodes):
            yield from _unsatisfied(place, terms, features)
        for number, claim in enumerate(profile.resource_claims):
            if claim.device_class not in features.device_classes:
                known = ", ".join(sorted(features.device_classes)[:20]) or "none"
                where = f"{place}/resource_claims[{number}]/device_class"
                yield where, f"the region has no DeviceClass {claim.device_class}; it has: {known}"


def fulfils(features: RegionFeatures, terms: Sequence[AffinityTermRequest]) -> bool:
    """Return whether one node of a region fulfils all conditions on its labels."""
    return any(all(_holds(term, node.labels) for term in terms) for node in features.nodes)


async def _unknown_runtimes(
    regions: CloudRegions, key: tuple[str, str], profiles: Sequence[ComputeProfileRequest]
) -> list[Fault]:
    """Return a fault for each class of runtimes that the region does not have (MC-070)."""
    asked = sorted({each.runtime_class for each in profiles if each.check_features and each.runtime_class})
    wanted = [ObjectsWanted(apiVersion="node.k8s.io/v1", kind="RuntimeClass", name=name) for name in asked]
    pages = await asyncio.gather(*(regions.resources(*key, each, limit=1) for each in wanted))
    missing = {name for name, page in zip(asked, pages, strict=True) if not page.items}
    return [
        (f"compute_profiles[{index}]/runtime_class", f"the region has no RuntimeClass {each.runtime_class}")
        for index, each in enumerate(profiles)
        if each.check_features and each.runtime_class in missing
    ]


def _terms(profile: ComputeProfileRequest) -> Sequence[tuple[str, AffinityTermRequest]]:
    """Return the conditions on labels of Node Feature Discovery, each with its place in the profile."""
    selected = (
        (f"node_selector/{escaped(key)}", AffinityTermRequest(key=key, operator="In", values=(value,)))
        for key, value in profile.node_selector.items()
    )
    terms = ((f"affinity[{index}]", term) for index, term in enumerate(profile.affinity))
    return [(place, term) for place, term in (*selected, *terms) if term.key.startswith(FEATURE)]


def _holds(term: AffinityTermRequest, labels: Mapping[str, str]) -> bool:
    """Return whether the labels of a node fulfil a condition, as Kubernetes judges it (nodeSelectorTerms)."""
    value = labels.get(term.key)
    match term.operator:
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "NotIn":
            return value not in term.values
        case "In":
            return value in term.values
    number = _integer(value)
    if number is None:
        return False
    return number > int(term.values[0]) if term.operator == "Gt" else number < int(term.values[0])


def _integer(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def _unsatisfied(
    place: str, terms: Sequence[tuple[str, AffinityTermRequest]], features: RegionFeatures
) -> Iterator[Fault]:
    """Yield the conditions that no node fulfils; if each has nodes that do, all of them together have none."""
    alone = [(where, term) for where, term in terms if not any(_holds(term, node.labels) for node in features.nodes)]
    for where, term in alone:
        yield f"{place}/{where}", f"no node of the region has this; nearest labels: {_nearest(term, features)}"
    if not alone:
        yield f"{place}/{terms[0][0]}", f"no node fulfils this together with {len(terms) - 1} other conditions"


def _nearest(term: AffinityTermRequest, features: RegionFeatures) -> str:
    """Return up to three labels of the region that look like the wanted one, with the number of their nodes."""
    own = features.labels.get(term.key)
    if own:
        return ", ".join(f"{term.key}={value} ({count})" for value, count in list(own.items())[:3])
    alike = nlargest(_MOST_COMPARED, sorted(features.labels), key=lambda label: _begun_alike(term.key, label))
    found = get_close_matches(term.key, alike, n=3, cutoff=0.0)
    return ", ".join(found) or "none"


def _begun_alike(one: str, other: str) -> int:
    """Return with how many equal characters two texts begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
