"""Variables for placeholders in manifests (capi.md CR-042): what is refused, what is sent, and that values stay secret."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from kubevnfm_events.objects import ApplyObjects, Variables
from packages.package_variants import OTHER_CNF, variant
from worlds.lcm_world import RING, World, sample_request

FILE = "Files/kubernetes/placeholders.yaml"
TEXT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {level: '${LEVEL:=2}', key: '${KEY}'}\n"
KEY = "sword-fish-42"


async def request(world: World, **capi: Any) -> tuple[str, dict[str, Any]]:
    """Return a new instance of a CNF with placeholders in its manifests, and the request to instantiate it."""
    world.vims.add("VIM_ID", "kubernetes")
    await world.upload(variant(world.folder, files={FILE: TEXT}))
    body = copy.deepcopy(sample_request("cnf", "instantiate"))
    body["additionalParams"] = {"lcm-kubernetes-def-files": [FILE], "capi": capi}
    return await world.create("cnf"), body


def plain(variables: Variables | None) -> dict[str, str] | None:
    return None if variables is None else {name: value.reveal(RING) for name, value in variables.items()}


def stored(world: World) -> bytes:
    return b"".join(path.read_bytes() for path in world.folder.glob("store.db*") if path.is_file())


async def test_the_same_variables_fill_in_manifests_in_each_operation_and_stay_secret(world: World) -> None:
    """CR-042: only variables make no workload cluster; a change of package keeps them and may add others."""
    instance_id, body = await request(world, variables={"KEY": KEY, "LEVEL": 471147, "X": True})
    operation = await world.reached(await world.ask(instance_id, "instantiate", body))
    assert operation["operationState"] == "COMPLETED", operation
    heal = await world.reached(await world.ask(instance_id, "heal", {}))
    assert heal["operationState"] == "COMPLETED", heal
    await world.upload(variant(world.folder, vnfd_id=OTHER_CNF, files={FILE: TEXT}))
    more = {"lcm-kubernetes-def-files": [FILE], "capi": {"variables": {"LEVEL": "4"}}}
    change = {"vnfdId": OTHER_CNF, "additionalParams": more}
    changed = await world.reached(await world.ask(instance_id, "change_vnfpkg", change))
    assert changed["operationState"] == "COMPLETED", changed
    again = await world.reached(await world.ask(instance_id, "heal", {}))
    assert again["operationState"] == "COMPLETED", again

    first = {"KEY": KEY, "LEVEL": "471147", "X": "true"}
    wanted = [first, first, {**first, "LEVEL": "4"}, {**first, "LEVEL": "4"}]
    asked = [plain(each.data.variables) for each in world.twins.commands if hasattr(each.data, "variables")]
    assert asked == wanted
    applies = [each.data for each in world.twins.commands if isinstance(each.data, ApplyObjects)]
    assert not any(each.cluster_apart for each in applies)

    shown = [operation, heal, changed, (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json]
    sent = "".join(each.data.model_dump_json() for each in world.twins.commands)
    for secret in (KEY, "471147"):
        assert secret not in str(shown)
        assert secret not in sent
        assert secret.encode() not in stored(world)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({}, f"{FILE}: no value for KEY"),
        ([], "capi/variables"),
        ({"KEY": None}, "capi/variables/KEY"),
        ({"KEY": {"a": KEY}}, "capi/variables/KEY"),
        ({"KEY": f"{KEY}\nb: c"}, "capi/variables/KEY"),
        ({"KEY": KEY, "1-x": "a"}, "capi/variables/1-x"),
    ],
)
async def test_variables_that_cannot_be_used_are_refused_by_name(world: World, variables: Any, named: str) -> None:
    """CR-042: 400 before an operation begins, and without the value."""
    instance_id, body = await request(world, variables=variables)
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/instantiate", body)
    assert (answer.status, named in answer.detail, KEY in str(answer.raw)) == (400, True, False), answer.raw


async def test_a_change_of_package_takes_nothing_else_about_clusters(world: World) -> None:
    """CR-042: and its placeholders are checked too."""
    instance_id, body = await request(world, variables={"KEY": KEY})
    await world.reached(await world.ask(instance_id, "instantiate", body))
    await world.upload(variant(world.folder, vnfd_id=OTHER_CNF, files={FILE: TEXT.replace("KEY", "OTHER")}))
    for capi, status, named in (
        ({"ready": "available"}, 422, "capi/ready"),
        ({"rollout": True}, 422, "capi/rollout"),
        ([], 400, "capi"),
        ({"variables": {}}, 400, "no value for OTHER"),
    ):
        change = {"vnfdId": OTHER_CNF, "additionalParams": {"lcm-kubernetes-def-files": [FILE], "capi": capi}}
        answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", change)
        assert (answer.status, named in answer.detail) == (status, True), answer.raw
