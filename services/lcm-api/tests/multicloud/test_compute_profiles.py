"""Compute profiles of ``/multicloud/v1/vnf_instances``, and each line of bad input about them (multicloud.md chapters 6, 10, 15)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from kubevnfm_clients.multicloud.region_views import KubernetesObject, RegionFeatures
from kubevnfm_events.compute_profiles import ComputeProfile
from kubevnfm_events.objects import ObjectsOrder
from packages.package_variants import variant
from worlds.lcm_world import Answer, World, lcm_world

FOLDER = "Files/kubernetes"
CONTAINER = "{name: main, image: 'r:1', resources: {limits: {cpu: 2}}}"
FILES = {
    f"{FOLDER}/artifact-order.yaml": "artifacts: [{file: r.yaml}]\n",
    f"{FOLDER}/r.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: router}\n"
    f"spec: {{template: {{metadata: {{}}, spec: {{containers: [{CONTAINER}]}}}}}}\n",
}
AVX = "feature.node.kubernetes.io/cpu-cpuid.AVX512F"
CORES = "feature.node.kubernetes.io/cpu-cores"
FEATURES = {
    "nodes": [
        {"name": "n1", "labels": {AVX: "true", CORES: "8"}, "capacity": {}, "allocatable": {}},
        {"name": "n2", "labels": {CORES: "64"}, "capacity": {}, "allocatable": {}},
    ],
    "labels": {AVX: {"true": 1}, CORES: {"8": 1, "64": 1}},
    "extended_resources": {},
    "devices": [],
    "device_classes": ["gpu.example.com"],
    "as_of": "2026-11-26T10:00:00Z",
}


class _Region:
    """A gateway with one region and one package with a workload ``router``."""

    def __init__(self, world: World, csar_id: str) -> None:
        self.world, self.csar_id = world, csar_id

    async def bring_up(self, *profiles: dict[str, Any]) -> Answer:
        asked = {"cloud_region_id": "op/edge", "csar_id": self.csar_id, "compute_profiles": list(profiles)}
        return await self.world.call("POST", "/multicloud/v1/vnf_instances", asked)

    def profiles(self) -> tuple[ComputeProfile, ...]:
        """Return those of the last command."""
        sent = self.world.twins.commands[-1].data
        assert isinstance(sent, ObjectsOrder)
        return sent.compute_profiles


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[_Region]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    async with lcm_world(folder) as world:
        world.vims.add("vim-edge", "kubernetes")
        world.regions.add("op/edge", "vim-edge")
        world.regions.seen = RegionFeatures.model_validate(FEATURES)
        kata = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}}
        world.regions.objects["RuntimeClass/kata"] = KubernetesObject.model_validate(kata)
        onboarded = await world.upload(variant(folder, files=FILES))
        yield _Region(world, onboarded["id"])


@pytest.mark.asyncio(loop_scope="module")
async def test_a_profile_reaches_the_command(region: _Region) -> None:
    """MC-035, MC-070, MC-120, MC-121: what the region has and the workload can have is applied."""
    asked = {
        "vdu_id": "router",
        "replicas": 2,
        "requests": {"cpu": "500m"},
        "node_selector": {AVX: "true", "disk": "ssd"},
        "affinity": [{"key": CORES, "operator": "Gt", "values": ["4"]}],
        "runtime_class": "kata",
        "resource_claims": [{"name": "gpu", "device_class": "gpu.example.com", "count": 2}],
    }
    made = (await region.bring_up({**asked, "check_features": True})).must(201).json
    assert made["status"] == "READY"
    (sent,) = region.profiles()
    given = sent.model_dump(mode="json", exclude_defaults=True)
    assert given == {**asked, "resource_claims": [{"name": "gpu", "device_class": "gpu.example.com", "count": 2}]}
    repair = {"additionalParams": {"repair": True}}
    healing = (await region.world.lcm("POST", f"/vnf_instances/{made['vnf_id']}/heal", repair)).must(202)
    await region.world.reached(healing.headers["Location"].rpartition("/")[2], "COMPLETED")
    assert region.profiles() == (sent,)
    place = f"/multicloud/v1/vnf_instances/{made['vnf_id']}"
    (await region.world.call("PATCH", place, {"values": {"a": "b"}})).must(200)
    assert region.profiles() == (sent,)
    refused = (await region.world.call("PATCH", place, {"compute_profiles": [{"vdu_id": "switch"}]})).problem(422)
    assert [each["pointer"] for each in refused["errors"]] == ["/compute_profiles/0/vdu_id"]
    (await region.world.call("PATCH", place, {"compute_profiles": [{"vdu_id": "router", "replicas": 3}]})).must(200)
    assert [each.replicas for each in region.profiles()] == [3]
    (await region.world.call("PATCH", place, {"compute_profiles": None})).must(200)
    assert region.profiles() == ()


@pytest.mark.parametrize(
    ("profile", "pointer", "reason"),
    [
        ({"vdu_id": "switch"}, "/0/vdu_id", "no workload"),
        ({"replicas": -1}, "/0/replicas", "greater than or equal to 0"),
        ({"replicas": 10001}, "/0/replicas", "less than or equal to 10000"),
        ({"requests": {"cpu": "much"}}, "/0/requests/cpu", "match pattern"),
        ({"requests": {"cpu": "3"}}, "/0/requests/cpu", "the limit 2 is below the request 3"),
        ({"requests": {"a": "2Ei"}, "limits": {"a": "1Ei"}}, "/0/limits/a", "the limit 1Ei is below the request 2Ei"),
        ({"requests": {"a": "3"}, "limits": {"a": "2"}}, "/0/limits/a", "below"),
        ({"runtime_class": "gvisor"}, "/0/runtime_class", "no RuntimeClass gvisor"),
        ({"node_selector": {AVX: "false"}}, f"/0/node_selector/{AVX.replace('/', '~1')}", r"AVX512F=true \(1\)"),
        ({"node_selector": {f"{AVX}X": "true"}}, f"/0/node_selector/{AVX.replace('/', '~1')}X", f"labels: {AVX}"),
        (
            {"node_selector": {AVX: "true"}, "affinity": [{"key": CORES, "operator": "Gt", "values": ["8"]}]},
            f"/0/node_selector/{AVX.replace('/', '~1')}",
            "together with",
        ),
        ({"affinity": [{"key": CORES, "operator": "Lt", "values": ["8"]}]}, "/0/affinity/0", "no node"),
        ({"affinity": [{"key": CORES, "operator": "Near", "values": ["8"]}]}, "/0/affinity/0/operator", "'In'"),
        ({"affinity": [{"key": CORES, "operator": "Gt", "values": ["many"]}]}, "/0/affinity/0", "integer"),
        ({"resource_claims": [{"name": "g", "device_class": "fpga"}]}, "/0/resource_claims/0/device_class", "gpu.ex"),
        (
            {"resource_claims": [{"name": "g", "device_class": "gpu.example.com", "count": 33}]},
            "/0/resource_claims/0/count",
            "32",
        ),
        ({"memory": "1Gi"}, "/0/memory", "no such attribute"),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_cannot_be_had_is_refused(
    region: _Region, profile: dict[str, Any], pointer: str, reason: str
) -> None:
    """MC-035, MC-070, MC-120, MC-121: named by its pointer, before anything is created."""
    before = len(region.world.twins.commands)
    refused = (await region.bring_up({"vdu_id": "router", **profile})).problem(422)
    assert [each["pointer"] for each in refused["errors"]] == [f"/compute_profiles{pointer}"]

    assert re.search(reason, refused["errors"][0]["message"])
    assert len(region.world.twins.commands) == before


@pytest.mark.asyncio(loop_scope="module")
async def test_features_are_not_compared_if_the_caller_says_so(region: _Region) -> None:
    """MC-120: nodes may come later; a second profile for a workload is refused all the same."""
    later = {"vdu_id": "router", "node_selector": {AVX: "later"}, "runtime_class": "later", "check_features": False}
    (await region.bring_up(later)).must(201)
    refused = (await region.bring_up(later, later)).problem(422)
    assert [each["pointer"] for each in refused["errors"]] == ["/compute_profiles/1/vdu_id"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_request_with_many_wrong_conditions_names_some(region: _Region) -> None:
    """MC-120: what is compared and answered is bounded, however many conditions no node fulfils."""
    many = {f"{AVX}{number}": "true" for number in range(64)}
    refused = (await region.bring_up(*({"vdu_id": f"v{n}", "node_selector": many} for n in range(3)))).problem(422)
    assert len(refused["errors"]) == 100
    assert refused["errors"][99]["pointer"].startswith("/compute_profiles/1/node_selector/")
