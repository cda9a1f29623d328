"""The discovery documents: one per group version, and the aggregated one that has all in one answer.

Source: Kubernetes API concepts, "Discovery API"; aggregated discovery is ``apidiscovery.k8s.io`` v2 (v2beta1 before 1.30).
"""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_lab.kubernetes.objects import Obj
from kubevnfm_lab.kubernetes.resources import Resource, ResourceTable


def _subresource_kind(resource: Resource, subresource: str) -> tuple[str, str, str, tuple[str, ...]]:
    """Return (group, version, kind, verbs) of a subresource."""
    here = (resource.group, resource.version, resource.kind)
    return {
        "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
        "eviction": ("policy", "v1", "Eviction", ("create",)),
        "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
        "binding": ("", "v1", "Binding", ("create",)),
        "log": (*here, ("get",)),
        "finalize": (*here, ("update",)),
    }.get(subresource, (*here, ("get", "patch", "update")))


def api_versions(table: ResourceTable, address: str) -> Obj:
    """Return ``/api``."""
    return {
        "kind": "APIVersions",
        "versions": list(table.versions("")),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _group(table: ResourceTable, group: str) -> Obj:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in table.versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_group(table: ResourceTable, group: str) -> Obj:
    """Return ``/apis/<group>``."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(table, group)}


def api_groups(table: ResourceTable) -> Obj:
    """Return ``/apis``."""
    groups = [_group(table, group) for group in table.groups()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_resources(table: ResourceTable, group: str, version: str) -> Obj:
    """Return ``/api/v1`` or ``/apis/<group>/<version>``."""
    listed: list[Obj] = []
    for resource in table.of_version(group, version):
        entry: Obj = {
            "name": resource.plural,
            "singularName": resource.singular or resource.kind.lower(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(resource.verbs),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        listed.append(entry)
        for subresource in resource.subresources:
            sub_group, sub_version, kind, verbs = _subresource_kind(resource, subresource)
            sub: Obj = {
                "name": f"{resource.plural}/{subresource}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": kind,
                "verbs": list(verbs),
            }
            # Named only where it differs, such as policy/v1 for pods/eviction.
            if (sub_group, sub_version) != (group, version):
                sub |= {"group": sub_group, "version": sub_version}
            listed.append(sub)
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": listed}


def aggregated(table: ResourceTable, groups: Sequence[str], api_version: str) -> Obj:
    """Return an APIGroupDiscoveryList of ``groups`` (the core group is ``""``)."""
    items: list[Obj] = []
    for group in groups:
        if group in table.away:
            stale = [{"version": version, "freshness": "Stale"} for version in table.versions(group)]
            items.append({"metadata": {"name": group}, "versions": stale})
            continue
        versions = [
            {
                "version": version,
                "resources": [_aggregated_resource(r) for r in table.of_version(group, version)],
                "freshness": "Current",
            }
            for version in table.versions(group)
        ]
        items.append({"metadata": {"name": group, "creationTimestamp": None}, "versions": versions})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}


def _aggregated_resource(resource: Resource) -> Obj:
    entry: Obj = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular or resource.kind.lower(),
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = []
    for subresource in resource.subresources:
        group, version, kind, verbs = _subresource_kind(resource, subresource)
        entry["subresources"].append(
            {
                "subresource": subresource,
                "responseKind": {"group": group, "version": version, "kind": kind},
                "verbs": list(verbs),
            }
        )
    return entry
