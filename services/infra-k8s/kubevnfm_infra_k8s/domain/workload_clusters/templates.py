"""Templates of Cluster API: objects that others refer to by name, and that are replaced instead of changed.

A change of a template's spec is refused by its webhook or does not reach the Machines, so that it becomes another object,
which the objects that refer to it name from then on (capi.md CR-095 to CR-097).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from kubevnfm_infra_k8s.domain.capi.contract import CONTROL_PLANE, CORE, contract_of
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from kubevnfm_infra_k8s.domain.objects import Body, Resource, Wanted, digest_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.release import Entry, Release
from kubevnfm_infra_k8s.domain.removing.pruning import PruneRun
from kubevnfm_infra_k8s.domain.workload_clusters.references import Reference, own_reference, reference_in, references

log = structlog.get_logger()

_REFERRING: Final = frozenset({"KubeadmControlPlane", "MachineDeployment", "MachinePool", "ClusterClass"})
_HOLDING: Final = (
    *((CORE, kind) for kind in ("MachineDeployment", "MachinePool", "MachineSet", "Machine", "ClusterClass")),
    (CONTROL_PLANE, "KubeadmControlPlane"),
)
"""The kinds that may still refer to a template of an earlier package."""
_IMMUTABLE: Final = "immutable"
_HASH_LENGTH: Final = 8


def renamed(value: Any, names: Mapping[Reference, str]) -> Any:
    """Return a spec in which references have the new names."""
    if isinstance(value, Mapping):
        found = reference_in(value)
        changed = {name: renamed(each, names) for name, each in value.items()}
        return {**changed, "name": names[found]} if found is not None and found in names else changed
    if isinstance(value, list | tuple):
        return [renamed(each, names) for each in value]
    return value


async def with_templates(cluster: Cluster, objects: Sequence[Wanted], release: Release) -> Sequence[Wanted]:
    """Return the objects with each changed template under another name, and the references to it.

    A template whose spec the cluster has already keeps the name that it has there. Raises ObjectRefused for a denial that is
    not about a field that cannot change.
    """
    referring = [each for each in objects if each.key.kind in _REFERRING]
    referred = {found for each in referring for found in references(each.body.get("spec"))}
    templates = [each for each in objects if own_reference(each.key) in referred]
    names = await each_of(templates, lambda each: _present_name(cluster, each, release))
    changed = {each.key: name for each, name in zip(templates, names, strict=True) if name != each.key.name}
    by_reference = {own_reference(key): name for key, name in changed.items()}
    return [_changed(each, changed.get(each.key), by_reference) for each in objects]


def with_present_names(objects: Sequence[Wanted], release: Release) -> Sequence[Wanted]:
    """Return the objects under the names that the inventory has for them now, and the references to these."""
    # The newest entry of a manifest is the last one: earlier ones are templates that are still in use.
    names = {
        replace(entry.key, name=entry.manifest_name or entry.key.name).identity: entry.key.name
        for entry in release.entries
    }
    changed = {
        each.key: name for each in objects if (name := names.get(each.key.identity, each.key.name)) != each.key.name
    }
    by_reference = {own_reference(key): name for key, name in changed.items()}
    return [_changed(each, changed.get(each.key), by_reference) for each in objects]


def _changed(wanted: Wanted, name: str | None, names: Mapping[Reference, str]) -> Wanted:
    if name is not None:
        return _under(wanted, name)
    if names and wanted.key.kind in _REFERRING:
        return replace(wanted, body={**wanted.body, "spec": renamed(wanted.body.get("spec"), names)})
    return wanted


def _under(wanted: Wanted, name: str) -> Wanted:
    body = {**wanted.body, "metadata": {**wanted.body["metadata"], "name": name}}
    return replace(wanted, key=replace(wanted.key, name=name), body=body, manifest_name=wanted.key.name)


async def _present_name(cluster: Cluster, wanted: Wanted, release: Release) -> str:
    """Return the name under which the cluster has this spec, or a new one; the manifest's own one if it is free."""
    names = [entry.key.name for entry in release.entries if _is_of(entry, wanted)]
    is_there = False
    # The newest first: an update that is repeated finds what it has made.
    for name in reversed(names):
        candidate = wanted if name == wanted.key.name else _under(wanted, name)
        there = await cluster.get(candidate.resource, candidate.key)
        if there is None:
            continue
        is_there = True
        if await _has_spec(cluster, candidate, there):
            return name
    if not is_there:
        return wanted.key.name
    return f"{wanted.key.name}-{digest_of(wanted.body.get('spec') or {})[:_HASH_LENGTH]}"


def _is_of(entry: Entry, wanted: Wanted) -> bool:
    key = replace(entry.key, name=entry.manifest_name or entry.key.name)
    return key.identity == wanted.key.identity


async def _has_spec(cluster: Cluster, wanted: Wanted, there: Body) -> bool:
    """Return whether the object would keep its spec; the API server decides, because it fills in defaults."""
    try:
        after = await cluster.apply(wanted.resource, wanted.key, wanted.body, dry_run=True)
    except ObjectRefused as refusal:
        if _IMMUTABLE not in refusal.message:
            raise
        log.info("template_immutable", object=str(wanted.key), reason=str(refusal))
        return False
    return bool(after.get("spec") == there.get("spec"))


async def referred_templates(cluster: Cluster, release: Release) -> frozenset[tuple[str, Reference]]:
    """Return what objects of Cluster API refer to, each with its namespace, in the namespaces of a release."""
    namespaces = {entry.key.namespace for entry in release.entries if entry.key.namespace}
    contracts = [contract_of(entry.key.api_version) for entry in release.entries]
    versions = {each for each in contracts if each is not None}
    kinds: list[Resource] = []
    for group, kind in _HOLDING:
        found = [await cluster.resource(f"{group}/{version}", kind) for version in sorted(versions, reverse=True)]
        kinds += [each for each in found[:1] if each is not None]
    pairs = [(kind, namespace) for kind in kinds for namespace in sorted(namespaces)]
    listed = await each_of(pairs, lambda pair: cluster.list(pair[0], namespace=pair[1]))
    return frozenset(
        (namespace, reference)
        for (_, namespace), bodies in zip(pairs, listed, strict=True)
        for body in bodies
        for reference in references(body.get("spec"))
    )


@dataclass(frozen=True)
class ClusterPruneRun(PruneRun):
    """The pruning of a workload cluster's objects, which leaves templates that are still in use (CR-096)."""

    in_use: Collection[tuple[str, Reference]]

    async def is_to_go(self, release: Release, entry: Entry, resource: Resource, body: Body) -> bool:
        """As for other objects, but a template is kept while another object refers to it."""
        if (entry.key.namespace, own_reference(entry.key)) in self.in_use:
            log.info("template_kept", object=str(entry.key), reason="another object refers to it")
            return False
        return await super().is_to_go(release, entry, resource, body)
