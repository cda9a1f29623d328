"""Checks of an update of a workload cluster, before anything is sent (capi.md CR-098, CR-099)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kubevnfm_events.credentials import WorkloadCluster
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_infra_k8s.domain.capi.contract import CORE, GROUPS, is_cluster
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import ObjectRefused, ObjectsRefused
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Wanted, field_at
from kubevnfm_infra_k8s.domain.ports import Cluster

_VERSION_AT: Final[Mapping[str, tuple[str, ...]]] = {
    "KubeadmControlPlane": ("spec", "version"),
    "MachineDeployment": ("spec", "template", "spec", "version"),
    "MachinePool": ("spec", "template", "spec", "version"),
    "Cluster": ("spec", "topology", "version"),
}
_WORKERS: Final = frozenset({"MachineDeployment", "MachinePool"})
_FIXED: Final[Sequence[tuple[str, ...]]] = (
    ("spec", "clusterNetwork", "pods", "cidrBlocks"),
    ("spec", "clusterNetwork", "services", "cidrBlocks"),
    ("spec", "controlPlaneEndpoint"),
)
"""Fields of a Cluster that its machines were set up with."""
_VERSION: Final = re.compile(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:[-+].*)?")


async def present(cluster: Cluster, objects: Sequence[Wanted]) -> Mapping[ObjectKey, Body]:
    """Return the objects of Cluster API that exist already."""
    mine = [each for each in objects if each.key.group in GROUPS]
    found = await each_of(mine, lambda each: cluster.get(each.resource, each.key))
    return {each.key: body for each, body in zip(mine, found, strict=True) if body is not None}


def version_step(objects: Sequence[Wanted], there: Mapping[ObjectKey, Body]) -> str | None:
    """Return the Kubernetes version that the cluster is brought to; None if no object gets another one."""
    return max((new for _, _, new in _steps(objects, there)), key=_read, default=None)


def workers_of_a_version_step(objects: Sequence[Wanted], there: Mapping[ObjectKey, Body]) -> frozenset[ObjectKey]:
    """Return the workers that get another Kubernetes version, for which they wait for their control plane."""
    return frozenset(each.key for each, _, _ in _steps(objects, there) if each.key.kind in _WORKERS)


def check_update(objects: Sequence[Wanted], there: Mapping[ObjectKey, Body], workload: WorkloadCluster) -> None:
    """Raise Unprocessable naming the field that cannot be changed so, with both values."""
    clusters = [each for each in objects if is_cluster(each.key)]
    if (workload.namespace, workload.name) not in {(each.key.namespace, each.key.name) for each in clusters}:
        named = ", ".join(each.key.name for each in clusters) or "none"
        raise Unprocessable("metadata.name", f"the Cluster {workload.name} expected in the files, found {named}")
    for each in clusters:
        body = there.get(each.key) or {}
        for path in _FIXED:
            _check_same(each, path, field_at(body, *path), field_at(each.body, *path))
    for each in objects:
        if each.key.group == CORE and each.key.kind in _WORKERS:
            name = field_at(there.get(each.key) or {}, "spec", "clusterName") or workload.name
            for path in (("spec", "clusterName"), ("spec", "template", "spec", "clusterName")):
                _check_same(each, path, name, field_at(each.body, *path))
    for each, old, new in _steps(objects, there):
        before, after = _read(old), _read(new)
        if after < before:
            raise Unprocessable(_place(each), f"{new} is below {old}, the present one: Kubernetes has no way down")
        if before[0] != after[0] or after[1] - before[1] > 1:
            raise Unprocessable(_place(each), f"{new} is more than one minor version above {old}, the present one")
    _check_workers(objects)


def _check_same(wanted: Wanted, path: Sequence[str], old: object, new: object) -> None:
    # A field that the manifest leaves out stays: the endpoint comes from the provider, CIDRs may be the defaults.
    if new is None or old is None or new == old or not new:
        return
    place = f"{'.'.join(path)} of {wanted.key} ({wanted.file})"
    raise Unprocessable(place, f"{old} expected, as the cluster was built with it; found {new}")


def _check_workers(objects: Sequence[Wanted]) -> None:
    planes = [_version_of(each.key, each.body) for each in objects if each.key.kind == "KubeadmControlPlane"]
    highest = max((_read(each) for each in planes if each is not None), default=None)
    for each in objects:
        version = _version_of(each.key, each.body) if each.key.kind in _WORKERS else None
        if highest is not None and version is not None and _read(version) > highest:
            shown = ".".join(str(number) for number in highest)
            raise Unprocessable(_place(each), f"{version} is above v{shown}, that of the control plane")


def _steps(objects: Sequence[Wanted], there: Mapping[ObjectKey, Body]) -> Iterator[tuple[Wanted, str, str]]:
    """Yield the objects that get another Kubernetes version, with the present and the new one."""
    for each in objects:
        body = there.get(each.key)
        old, new = _version_of(each.key, body or {}), _version_of(each.key, each.body)
        if old is not None and new is not None and _read(old, each) != _read(new, each):
            yield each, old, new


def _version_of(key: ObjectKey, body: Body) -> str | None:
    path = _VERSION_AT.get(key.kind) if key.group in GROUPS else None
    found = field_at(body, *path) if path is not None else None
    return str(found) if found else None


def _read(version: str, of: Wanted | None = None) -> tuple[int, int, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        raise Unprocessable(_place(of) if of is not None else "version", f"{version}: a version as v1.33.1 expected")
    major, minor, patch = found.groups()
    return int(major), int(minor), int(patch)


def _place(wanted: Wanted) -> str:
    return f"{'.'.join(_VERSION_AT[wanted.key.kind])} of {wanted.key} ({wanted.file})"


async def rehearse_changes(cluster: Cluster, objects: Sequence[Wanted], there: Mapping[ObjectKey, Body]) -> None:
    """Have the webhooks of Cluster API judge the changes of existing objects. Raises ObjectsRefused with all denials.

    No other object can cure them: each webhook compares the object with what it was.
    """
    refusals: list[ObjectRefused] = []

    async def check(each: Wanted) -> None:
        try:
            await cluster.apply(each.resource, each.key, each.body, dry_run=True)
        except ObjectRefused as refusal:
            refusals.append(refusal)

    await each_of([each for each in objects if each.key in there], check)
    if refusals:
        raise ObjectsRefused(refusals)
