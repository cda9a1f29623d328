"""``clone_of``: a VNF like another one (multicloud.md MC-116), and its bad input."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from kubevnfm_events.objects import ApplyObjects
from kubevnfm_secrets import revealed
from packages.package_variants import variant
from worlds.lcm_world import RING, World, lcm_world

VNFS = "/multicloud/v1/vnf_instances"
FOLDER = "Files/kubernetes"
ORDER = f"{FOLDER}/artifact-order.yaml"
DEPLOYMENT = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: c}]}}}}\n"
FILES = {ORDER: "artifacts: [{file: a.yaml}]\n", f"{FOLDER}/a.yaml": DEPLOYMENT}
OUTPUT = {"object": {"kind": "Deployment", "name": "web"}, "jsonpath": "status.replicas"}

Ground = tuple[World, dict[str, Any]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ground]:
    folder = tmp_path_factory.mktemp("clones")
    async with lcm_world(folder) as world:
        world.vims.add("vim-edge", "kubernetes")
        world.regions.add("op/edge", "vim-edge")
        onboarded = await world.upload(variant(folder, files=FILES))
        asked = {
            "cloud_region_id": "op/edge",
            "csar_id": onboarded["id"],
            "namespace": "first",
            "vnf_instance_name": "one",
            "values": {"level": 1, "db": {"port": 1, "password": "open-sesame"}},
            "compute_profiles": [{"vdu_id": "web", "requests": {"cpu": "1"}}],
            "outputs": {"ready": OUTPUT},
        }
        yield world, (await world.call("POST", VNFS, asked)).must(201).json


@pytest.mark.asyncio(loop_scope="module")
async def test_a_clone_has_what_its_request_does_not_give(ground: Ground) -> None:
    """MC-116: values are merged, secret ones included; the namespace is its own."""
    world, source = ground
    asked = {"clone_of": source["vnf_id"], "namespace": "second", "values": {"level": 2}}
    made = (await world.call("POST", VNFS, asked)).must(201).json
    assert (made["status"], made["namespace"], made["vnf_instance_name"]) == ("READY", "second", "one")
    assert {name: made[name] for name in ("csar_id", "cloud_region_id")} == {
        name: source[name] for name in ("csar_id", "cloud_region_id")
    }
    first, second = (each.data for each in world.twins.commands if isinstance(each.data, ApplyObjects))
    values = revealed(second.values, RING)
    assert (values["level"], values["db"], values["namespace"]) == (2, {"port": 1, "password": "open-sesame"}, "second")
    assert (second.compute_profiles, second.outputs) == (first.compute_profiles, first.outputs)
    assert "open-sesame" not in str(made)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"clone_of": "none", "namespace": "x"}, "/clone_of"),
        ({"clone_of": 5, "namespace": "x"}, "/clone_of"),
        ({}, "/namespace"),
        ({"namespace": "first"}, "/namespace"),
        ({"values": {"namespace": "first"}}, "/namespace"),
        ({"cloud_region_id": "edge", "namespace": "first"}, "/namespace"),
        ({"namespace": "x", "oof_parameters": []}, "/clone_of"),
        ({"namespace": "x", "regions": []}, "/clone_of"),
        ({"namespace": "x", "values": []}, "/values"),
    ],
    ids=str,
)
async def test_what_cannot_be_cloned_is_refused(ground: Ground, members: dict[str, Any], pointer: str) -> None:
    """MC-116, and chapters 6 and 15, Bad input."""
    world, source = ground
    refused = await world.call("POST", VNFS, {"clone_of": source["vnf_id"], **members})
    assert refused.problem(422)["errors"][0]["pointer"] == pointer


@pytest.mark.asyncio(loop_scope="module")
async def test_a_vnf_in_deletion_and_one_of_sol003_are_not_cloned(ground: Ground) -> None:
    """MC-116, and chapter 15, Bad input."""
    world, source = ground
    of_sol = await world.create("cnf")
    world.twins.waiting.add("infra.k8s.delete_objects")
    (await world.call("DELETE", f"{VNFS}/{source['vnf_id']}", headers={"Prefer": "respond-async"})).must(202)
    for vnf_id in (source["vnf_id"], of_sol):
        refused = await world.call("POST", VNFS, {"clone_of": vnf_id, "namespace": "third"})
        assert refused.problem(422)["errors"][0]["pointer"] == "/clone_of"
    await world.twins.release()
