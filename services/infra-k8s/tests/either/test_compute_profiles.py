"""Compute profiles as a cluster gets them (multicloud.md MC-035, MC-070, MC-121)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events.compute_profiles import ComputeProfile
from kubevnfm_kit.errors import Unprocessable
from packages.kubernetes_objects import a_deployment, an_object

FILES = {"web.yaml": a_deployment(replicas=0), "a.yaml": an_object("ConfigMap", "a", data={})}
PACKAGE = {"artifact-order.yaml": "artifacts: [{file: a.yaml, priority: 1}, {file: web.yaml, priority: 2}]", **FILES}


async def apply(ground: Any, profile: dict[str, Any]) -> None:
    """Apply an ordered package with a workload ``web`` and a profile of it."""
    ground.instances.add(ground.namespace)
    ground.site.step = "apply"
    await ground.site.apply(PACKAGE, **order(ground, profile))


async def change(ground: Any, profile: dict[str, Any]) -> None:
    """Change the profile."""
    await ground.site.replace(PACKAGE, **order(ground, profile))


def order(ground: Any, profile: dict[str, Any]) -> dict[str, Any]:
    return {
        "def_files": list(FILES),
        "order_artifact": "artifact-order.yaml",
        "instance": ground.namespace,
        "namespace": ground.namespace,
        "compute_profiles": (ComputeProfile.model_validate(profile),),
    }


async def templates(ground: Any) -> list[int]:
    """Return of how many devices the templates of claims are."""
    resource = await ground.cluster.resource("resource.k8s.io/v1", "ResourceClaimTemplate")
    listed = await ground.cluster.list(resource, namespace=ground.namespace)
    return [each["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] for each in listed]


PROFILE: dict[str, Any] = {
    "vdu_id": "web",
    "requests": {"cpu": "10m"},
    "limits": {"cpu": "20m", "memory": "8Mi"},
    "hugepages": {"2Mi": "4Mi"},
    "node_selector": {"disk": "ssd"},
    "affinity": [{"key": "zone", "operator": "NotIn", "values": ["far"]}],
    "tolerations": [{"key": "dpdk", "operator": "Exists", "effect": "NoExecute", "toleration_seconds": 30}],
    "resource_claims": [
        {
            "name": "gpu",
            "device_class": "gpu.example.com",
            "count": 2,
            "selectors": ["device.driver == 'gpu.example.com'"],
        }
    ],
}


async def test_a_workload_has_its_profile_and_loses_it_with_the_next_package(ground: Any) -> None:
    """MC-035, MC-121: the API server has taken every member; templates of claims come and go with the instance."""
    await apply(ground, PROFILE)
    pod = (await ground.shown("apps/v1", "Deployment", "web"))["spec"]["template"]["spec"]
    resources = pod["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "10m", "hugepages-2Mi": "4Mi"}
    assert resources["limits"] == {"cpu": "20m", "memory": "8Mi", "hugepages-2Mi": "4Mi"}
    assert resources["claims"] == [{"name": "gpu"}]
    assert pod["nodeSelector"] == {"disk": "ssd"}
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["far"]}]}
    ]
    assert pod["tolerations"] == [{"key": "dpdk", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]
    (claim,) = pod["resourceClaims"]
    template = await ground.shown("resource.k8s.io/v1", "ResourceClaimTemplate", claim["resourceClaimTemplateName"])
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert (request["name"], request["exactly"]["count"]) == ("gpu", 2)
    assert await ground.shown("v1", "ConfigMap", "a") is not None
    # The API server takes no change of a template.
    (claimed,) = PROFILE["resource_claims"]
    await change(ground, {**PROFILE, "resource_claims": [{**claimed, "count": 3}]})
    assert await templates(ground) == [3]
    await ground.delete()
    assert await ground.shown("apps/v1", "Deployment", "web") is None
    assert await templates(ground) == []


async def test_a_profile_without_a_workload_makes_nothing(ground: Any) -> None:
    """MC-035: manifests by URL are not known to the gateway, so that the cluster's service refuses what no workload has."""
    with pytest.raises(Unprocessable, match="no workload"):
        await apply(ground, {"vdu_id": "router"})
    assert await ground.shown("v1", "ConfigMap", "a") is None
