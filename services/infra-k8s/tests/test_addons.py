"""Addons inside workload clusters on the lab's stand-in: those of another package, and the way back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from kubevnfm_events import PackageRef
from kubevnfm_infra_k8s.domain.errors import PolicyViolated
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_infra_k8s.domain.planning.cnf_policy import Override, Policies
from kubevnfm_infra_k8s.domain.release import ADDONS
from kubevnfm_infra_k8s.handlers.policy_gate import PolicyGate
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from kubevnfm_lab.kubernetes.objects import Key
from worlds.capi_management import ADDON, Management, files_of, managed

OTHER = "Files/addons/other.yaml"
ROLES = Resource("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)


@pytest.fixture
async def management(site: Any, lab: LabCluster) -> AsyncIterator[Management]:
    async with managed(site, lab) as management:
        yield management


def cluster_role(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
    }


def settings(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}}


def package(management: Management, number: int, *objects: dict[str, Any]) -> PackageRef:
    """Return a package with the sample's network, and these objects in a file of their own."""
    files = {**files_of("capi-workload", addons=True), OTHER: list(objects)}
    found: PackageRef = management.site.packages.add(files, package_id=f"p-{number}")
    return found


async def inside(labs: LabClusters, endpoint: str) -> set[str]:
    """Return the objects of users in the workload cluster."""
    host, _, port = endpoint.removeprefix("https://").partition(":")
    workload = labs.find(host, int(port))
    assert workload is not None
    names = ("ConfigMap/kube-system/", "ClusterRole//", "DaemonSet/kube-system/", "ServiceAccount/kube-system/")
    places = {place for place in workload.inventory()["objects"] if place.startswith(names)}
    return {place for place in places if place.rpartition("/")[2] in ("cni", "one", "two", "three", "kubeadm")}


CNI = {"DaemonSet/kube-system/cni", "ServiceAccount/kube-system/cni"}


async def test_addons_of_another_package_come_first_and_others_go_last(
    management: Management, labs: LabClusters
) -> None:
    """CR-048, CR-094: each part may come twice; the way back applies the earlier ones and deletes the new ones."""
    await management.apply()
    endpoint = (await management.wait("initialized")).endpoint
    first = package(management, 1, cluster_role("one"), settings("two"))
    await management.addons(ADDON, OTHER, package=first)
    await management.wait("available")
    assert await inside(labs, endpoint) == {*CNI, "ClusterRole//one", "ConfigMap/kube-system/two"}

    second = package(management, 2, settings("two"), settings("three"))
    for _ in range(2):
        await management.addons(ADDON, OTHER, package=second, operation="op2")
    assert "ClusterRole//one" in await inside(labs, endpoint)
    for _ in range(2):
        await management.addons(ADDON, OTHER, package=second, operation="op2", part="prune")
    assert await inside(labs, endpoint) == {*CNI, "ConfigMap/kube-system/two", "ConfigMap/kube-system/three"}
    release = await management.site.handlers.releases.get("i1", ADDONS)
    assert {entry.key.name for entry in release.entries} == {"cni", "two", "three"}

    await management.addons(ADDON, OTHER, package=first, operation="op3", part="replace")
    assert await inside(labs, endpoint) == {*CNI, "ClusterRole//one", "ConfigMap/kube-system/two"}


async def test_what_was_there_before_the_addons_is_given_back(management: Management, labs: LabClusters) -> None:
    """CR-020, CR-048: kubeadm has made it; it stays without our labels, also if no addons are left."""
    await management.apply()
    endpoint = (await management.wait("initialized")).endpoint
    host, _, port = endpoint.removeprefix("https://").partition(":")
    workload = labs.find(host, int(port))
    assert workload is not None
    workload.plane.create("clusterroles.rbac.authorization.k8s.io", cluster_role("kubeadm"))
    await management.addons(OTHER, package=package(management, 1, cluster_role("kubeadm"), settings("two")))
    await management.addons(package=package(management, 2), def_files=(), operation="op2", part="replace")
    assert await inside(labs, endpoint) == set()
    role = workload.store.get("clusterroles.rbac.authorization.k8s.io", Key("", "kubeadm"))
    assert role is not None
    assert "kubevnfm.io/vnf-instance-id" not in (role["metadata"].get("labels") or {})


async def test_another_cluster_at_the_same_address_owes_nothing_to_the_earlier_one(
    management: Management, labs: LabClusters
) -> None:
    """CR-021, CR-048: the holders of cluster-scoped addons are forgotten with the cluster."""
    await management.apply()
    endpoint = (await management.wait("initialized")).endpoint
    await management.addons(OTHER, package=package(management, 1, cluster_role("one")))
    await management.site.delete()
    shared, key = management.site.handlers.shared, ObjectKey(ROLES.api_version, ROLES.kind, "", "one")
    assert await shared.hold(endpoint, key, "another", "i2") == []


async def test_the_policy_for_cnfs_judges_addons_by_rules_of_their_own(
    management: Management, labs: LabClusters
) -> None:
    """CR-126: nothing is made in the workload cluster; what packages put into their own clusters may have other rules."""
    await management.apply()
    endpoint = (await management.wait("initialized")).endpoint
    bad = package(management, 1, cluster_role("one"), settings("two"))
    releases = management.site.handlers.releases
    for own, is_refused in ((Override(), True), (Override(cluster_scoped=("*",), namespaces=("*",)), False)):
        gate = PolicyGate(Policies(mode="strict", pod_security="privileged", own_clusters=own), releases)
        management.handlers = replace(management.handlers, policy=gate)
        if is_refused:
            with pytest.raises(
                PolicyViolated, match=r"clusterScoped: ClusterRole one: kind .*; namespace: ConfigMap kube-sys"
            ):
                await management.addons(OTHER, package=bad)
            assert not {"ClusterRole//one", "ConfigMap/kube-system/two"} & await inside(labs, endpoint)
        else:
            await management.addons(OTHER, package=bad)
            assert {"ClusterRole//one", "ConfigMap/kube-system/two"} <= await inside(labs, endpoint)
