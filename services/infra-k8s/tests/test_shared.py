"""Cluster-scoped objects that several instances declare (capi.md CR-021)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.errors import SharedObjectDiffers
from kubevnfm_infra_k8s.domain.objects import ObjectKey
from kubevnfm_infra_k8s.domain.planning.preparing import instance_labels
from kubevnfm_infra_k8s.domain.ports import Cluster

Make = Callable[..., dict[str, Any]]
RBAC = "rbac.authorization.k8s.io/v1"
KEY = ObjectKey(RBAC, "ClusterRole", "", "reader")
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]


async def role(cluster: Cluster) -> Any:
    resource = await cluster.resource(RBAC, "ClusterRole")
    assert resource is not None
    return await cluster.get(resource, KEY)


async def test_equal_objects_are_shared_and_the_last_holder_deletes_them(
    site: Any, cluster: Cluster, make: Make
) -> None:
    """MC-047."""
    reader = make("ClusterRole", "reader", api_version=RBAC, rules=RULES)
    first = await site.apply({"f.yaml": reader}, instance="i1", operation="op1")
    second = await site.apply({"f.yaml": reader}, instance="i2", operation="op2")
    assert first.objects[0].uid == second.objects[0].uid
    await site.delete(instance="i1", operation="op3")
    left = await role(cluster)
    assert left["metadata"]["labels"]["kubevnfm.io/vnf-instance-id"] == "i2"
    await site.delete(instance="i2", operation="op4")
    assert await role(cluster) is None


async def test_different_content_is_rejected_and_leaves_no_trace(site: Any, cluster: Cluster, make: Make) -> None:
    """MC-047, CR-021."""
    await site.apply({"f.yaml": make("ClusterRole", "reader", api_version=RBAC, rules=RULES)}, instance="i1")
    with pytest.raises(SharedObjectDiffers, match="ClusterRole reader: VNF instances i1") as caught:
        await site.apply(
            {"f.yaml": make("ClusterRole", "reader", api_version=RBAC, rules=[])}, instance="i2", operation="op2"
        )
    assert caught.value.status == 409
    await site.delete(instance="i2", operation="op3")
    assert (await role(cluster))["rules"] == RULES
    await site.delete(instance="i1", operation="op4")
    assert await role(cluster) is None


async def test_many_instances_share_one_object_at_the_same_time(site: Any, cluster: Cluster, make: Make) -> None:
    """CR-021."""
    reader = make("ClusterRole", "reader", api_version=RBAC, rules=RULES)
    instances = [f"i{n}" for n in range(6)]
    done = await asyncio.gather(
        *(site.apply({"f.yaml": reader}, instance=each, operation=f"a-{each}") for each in instances)
    )
    assert len({each.objects[0].uid for each in done}) == 1
    await asyncio.gather(*(site.delete(instance=each, operation=f"d-{each}") for each in instances[:5]))
    assert await role(cluster) is not None
    await site.delete(instance="i5", operation="d-i5")
    assert await role(cluster) is None


async def test_a_late_label_of_a_former_holder_does_not_prevent_deletion_or_passing_on(
    site: Any, cluster: Cluster, make: Make
) -> None:
    reader = make("ClusterRole", "reader", api_version=RBAC, rules=RULES)
    for each in ("i1", "i2", "i3", "i4"):
        await site.apply({"f.yaml": reader}, instance=each, operation=f"a-{each}")
    resource = await cluster.resource(RBAC, "ClusterRole")
    assert resource is not None
    await site.delete(instance="i1", operation="d1")
    await site.delete(instance="i2", operation="d2")
    await cluster.patch(resource, KEY, {"metadata": {"labels": instance_labels("i2")}})
    await site.delete(instance="i3", operation="d3")
    assert (await role(cluster))["metadata"]["labels"]["kubevnfm.io/vnf-instance-id"] == "i4"
    await cluster.patch(resource, KEY, {"metadata": {"labels": instance_labels("i3")}})
    await site.delete(instance="i4", operation="d4")
    assert await role(cluster) is None


async def test_an_object_deleted_by_others_loses_its_holders(site: Any, cluster: Cluster, make: Make) -> None:
    await site.apply({"f.yaml": make("ClusterRole", "reader", api_version=RBAC, rules=RULES)}, instance="i1")
    resource = await cluster.resource(RBAC, "ClusterRole")
    assert resource is not None
    await cluster.delete(resource, KEY)
    await site.delete(instance="i1", operation="op3")
    await site.apply({"f.yaml": make("ClusterRole", "reader", api_version=RBAC, rules=[])}, instance="i2")
    assert (await role(cluster))["rules"] == []
