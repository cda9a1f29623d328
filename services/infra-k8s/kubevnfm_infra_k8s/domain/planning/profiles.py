"""Gives the manifests of an order its compute profiles, before their objects are planned (multicloud.md MC-034, MC-035)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kubevnfm_csar.profiled_workloads import Profiled, profiled
from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_infra_k8s.domain.reading.manifests import Manifest


def with_profiles(order: ObjectsOrder, manifests: Sequence[Manifest]) -> Sequence[Manifest]:
    """Return the manifests with the profiles of the order, and the objects that these need.

    Raises Unprocessable for what a workload cannot have: lcm-api has refused it, unless the files are not of the package.
    """
    if not order.compute_profiles:
        return manifests
    found = profiled([each.written_body for each in manifests], order.compute_profiles, order.vdus)
    if found.faults:
        raise Unprocessable(*found.faults[0], *found.faults[1:])
    return list(_changed(manifests, found))


def _changed(manifests: Sequence[Manifest], found: Profiled) -> Iterator[Manifest]:
    for position, (manifest, body) in enumerate(zip(manifests, found.bodies, strict=True)):
        claims = [claim for at, claim in found.claims if at == position]
        # They belong to the place of their workload in the order, and come before it.
        for number, claim in enumerate(claims, start=1):
            yield Manifest(f"compute_profiles of {manifest.place}", number, claim, manifest.artifact)
        yield manifest if manifest.is_read_only else replace(manifest, body=body)
