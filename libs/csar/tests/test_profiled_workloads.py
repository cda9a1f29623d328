"""Compute profiles are given to their workloads, or what of them cannot be is named."""

from __future__ import annotations

import re
from typing import Any

import pytest
from kubevnfm_csar.profiled_workloads import profiled
from kubevnfm_events.compute_profiles import ComputeProfile
from kubevnfm_events.objects import VduTarget


def profile(**members: Any) -> ComputeProfile:
    return ComputeProfile.model_validate({"vdu_id": "web", **members})


def deployment(**of_pod: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "web:1"}, {"name": "side", "image": "side:1"}], **of_pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ns1"},
        "spec": {"replicas": 1, "template": {"metadata": {}, "spec": spec}},
    }


def machine(**of_guest: Any) -> dict[str, Any]:
    guest = {"spec": {"domain": {"devices": {}}, **of_guest}}
    metadata = {"name": "web"}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": {"template": guest}}


SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
TERM = {"key": "zone", "operator": "In", "values": ["a"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_pods_get_all_of_a_profile_beside_what_their_manifest_has() -> None:
    """MC-035, MC-070, MC-121: each member of a profile is in the pod template, and the rest of the manifest stays."""
    before = deployment(
        nodeSelector={"disk": "ssd"},
        tolerations=[{"operator": "Exists", "effect": "NoSchedule"}],
        affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [1]}, {"matchExpressions": [2]}]}}},
    )
    before["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "1Gi"}}
    asked = profile(
        replicas=3,
        requests={"cpu": "500m"},
        limits={"cpu": "1"},
        hugepages={"2Mi": "512Mi"},
        node_selector={"feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true"},
        affinity=[TERM, {"key": "gone", "operator": "DoesNotExist"}],
        tolerations=[{"operator": "Exists", "effect": "NoSchedule"}, {"key": "dpdk", "value": "yes"}],
        runtime_class="kata",
        resource_claims=[
            {"name": "gpu", "device_class": "gpu.example.com", "count": 2, "selectors": ["device.x == 1"]}
        ],
    )
    found = profiled([SERVICE, before], [asked], [])
    assert not found.faults
    body = found.bodies[1]
    pod = body["spec"]["template"]["spec"]
    assert body["spec"]["replicas"] == 3
    assert pod["containers"][0]["resources"] == {
        "requests": {"cpu": "500m", "hugepages-2Mi": "512Mi"},
        "limits": {"memory": "1Gi", "cpu": "1", "hugepages-2Mi": "512Mi"},
        "claims": [{"name": "gpu"}],
    }
    assert "resources" not in pod["containers"][1]
    assert pod["nodeSelector"] == {"disk": "ssd", "feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true"}
    both = [TERM, {"key": "gone", "operator": "DoesNotExist"}]
    assert pod["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [
        {"matchFields": [1], "matchExpressions": both},
        {"matchExpressions": [2, *both]},
    ]
    assert pod["tolerations"] == [
        {"operator": "Exists", "effect": "NoSchedule"},
        {"key": "dpdk", "operator": "Equal", "value": "yes"},
    ]
    assert pod["runtimeClassName"] == "kata"
    assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "web-gpu-579653e6"}]
    ((position, template),) = found.claims
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 2}
    selectors = [{"cel": {"expression": "device.x == 1"}}]
    assert (position, template["metadata"]) == (1, {"name": "web-gpu-579653e6", "namespace": "ns1"})
    assert template["spec"]["spec"]["devices"]["requests"] == [
        {"name": "gpu", "exactly": {**exactly, "selectors": selectors}}
    ]
    # The given manifests stay as they were.
    assert before["spec"]["replicas"] == 1
    assert found.bodies[0] is SERVICE


def test_a_machine_gets_its_resources_in_its_domain() -> None:
    """MC-035: a virtual machine of KubeVirt has resources and pages in its domain, and its placement beside it."""
    asked = profile(requests={"cpu": "2"}, hugepages={"1Gi": "4Gi"}, node_selector={"disk": "ssd"})
    found = profiled([machine()], [asked], [])
    assert not found.faults
    assert found.bodies[0]["spec"]["template"]["spec"] == {
        "domain": {
            "devices": {},
            "resources": {"requests": {"cpu": "2"}},
            "memory": {"hugepages": {"pageSize": "1Gi"}, "guest": "4Gi"},
        },
        "nodeSelector": {"disk": "ssd"},
    }


def test_a_profile_names_a_container_and_a_vdu_its_workload() -> None:
    """MC-035: the VNFD's VDU stands for the workload that it is mapped to."""
    target = VduTarget(vdu_id="router", name="web", kind="Deployment")
    found = profiled([deployment()], [profile(vdu_id="router", container="side", limits={"cpu": "1"})], [target])
    assert not found.faults
    containers = found.bodies[0]["spec"]["template"]["spec"]["containers"]
    assert [each.get("resources") for each in containers] == [None, {"limits": {"cpu": "1"}}]


NAMES_A_LIST = deployment(resourceClaims=[{"name": ["gpu"]}])
LIMITED = deployment()
LIMITED["spec"]["template"]["spec"]["containers"][0]["resources"] = {
    "limits": {"cpu": 1},
    "requests": {"memory": "2Gi"},
}
CLAIMED = deployment(resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}])
CLAIM = {"name": "gpu", "device_class": "gpu.example.com"}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "web-gpu-d1b74fff"},
}
DAEMONS = {**deployment(), "kind": "DaemonSet"}
LEVEL = VduTarget(vdu_id="web", name="web", replicas=2)
NO_POD = {**deployment(), "spec": {}}


@pytest.mark.parametrize(
    ("bodies", "profiles", "vdus", "place", "reason"),
    [
        ([SERVICE], [profile()], [], "[0]/vdu_id", "no workload"),
        ([deployment(), DAEMONS], [profile()], [], "[0]/vdu_id", "several workloads are named web"),
        ([deployment()], [profile(), profile()], [], "[1]/vdu_id", r"compute_profiles\[0\] is for this workload too"),
        ([deployment()], [profile(replicas=1)], [LEVEL], "[0]/replicas", "the instantiation level says"),
        ([DAEMONS], [profile(replicas=1)], [], "[0]/replicas", "DaemonSet has no number"),
        ([deployment()], [profile(container="x")], [], "[0]/container", "Deployment web has no container x"),
        ([NO_POD], [profile()], [], "[0]/vdu_id", "no spec of its pods"),
        ([LIMITED], [profile(requests={"cpu": "1001m"})], [], "[0]/requests/cpu", "limit 1 is below the request 1001m"),
        ([LIMITED], [profile(limits={"memory": "2G"})], [], "[0]/limits/memory", "limit 2G is below the request 2Gi"),
        ([deployment()], [profile(requests={"m": "2Ei"}, limits={"m": "1E"})], [], "[0]/limits/m", "limit 1E is below"),
        ([CLAIMED], [profile(resource_claims=[CLAIM])], [], "[0]/resource_claims[0]/name", "has a claim gpu"),
        ([deployment()], [profile(resource_claims=[CLAIM, CLAIM])], [], "[0]/resource_claims[1]/name", "another name"),
        ([deployment(), TEMPLATE], [profile(resource_claims=[CLAIM])], [], "[0]/resource_claims", "of their own"),
        (
            [deployment(), {**deployment(), "kind": "StatefulSet"}],
            [profile(vdu_id="one", resource_claims=[CLAIM]), profile(vdu_id="two", resource_claims=[CLAIM])],
            [
                VduTarget(vdu_id="one", name="web", kind="Deployment"),
                VduTarget(vdu_id="two", name="web", kind="StatefulSet"),
            ],
            "[1]/resource_claims",
            "another profile has a ResourceClaimTemplate web-gpu",
        ),
        ([machine()], [profile(resource_claims=[CLAIM])], [], "[0]/resource_claims", "virtual machine"),
        ([machine()], [profile(runtime_class="kata")], [], "[0]/runtime_class", "virtual machine"),
        ([machine()], [profile(hugepages={"2Mi": "4Mi", "1Gi": "1Gi"})], [], "[0]/hugepages", "one size"),
        ([deployment(tolerations={"a": 1})], [profile()], [], "[0]/vdu_id", "tolerations: a list expected"),
        ([deployment(affinity={"nodeAffinity": 7})], [profile(affinity=[TERM])], [], "[0]/vdu_id", "nodeAffinity"),
    ],
)
def test_what_cannot_be_is_named(
    bodies: list[Any], profiles: list[ComputeProfile], vdus: list[VduTarget], place: str, reason: str
) -> None:
    """MC-035, MC-121: a profile for no workload or with what its workload cannot have changes nothing and is named by its place."""
    found = profiled(bodies, profiles, vdus)
    assert [where for where, _ in found.faults] == [f"compute_profiles{place}"]
    assert re.search(reason, found.faults[0][1])


def test_an_empty_member_is_as_none_whatever_its_form() -> None:
    """MC-035: what the manifest leaves empty takes what the profile has."""
    found = profiled([deployment(tolerations={})], [profile(tolerations=[{"key": "dpdk"}])], [])
    assert not found.faults
    assert found.bodies[0]["spec"]["template"]["spec"]["tolerations"] == [{"key": "dpdk", "operator": "Equal"}]


def test_a_claim_whose_name_is_no_text_is_in_no_ones_way() -> None:
    """MC-121: the API server refuses it; the profile is given to the workload all the same."""
    found = profiled([NAMES_A_LIST], [profile(resource_claims=[CLAIM])], [])
    assert not found.faults
    assert len(found.claims) == 1
