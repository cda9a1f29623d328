"""Groups: their members, their scaling by update and by signal, their healing."""

from __future__ import annotations

from typing import Any

import pytest
from clouds.openstack_stand import Json, Stand, path_of
from packages.openstack_templates import CLUSTER, CLUSTER_FILES, VERSION

SERIES = (
    VERSION
    + """
parameters: {count: {type: number, default: 2}}
resources:
  series:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      resource_def: {type: "OS::Heat::Value", properties: {value: "n-%index%"}}
outputs:
  all: {value: {get_attr: [series, value]}}
  by_name: {value: {get_attr: [series, attributes, value]}}
  second: {value: {get_attr: [series, resource.1.value]}}
  size: {value: {get_attr: [series, refs]}}
"""
)


SERVERS = (
    VERSION
    + """
parameters: {flavor: {type: string, default: m1.small}}
resources:
  servers:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 0
      max_size: 5
      desired_capacity: 2
      resource:
        type: worker.yaml
        properties: {flavor: {get_param: flavor}, network: net0}
"""
)


async def a_cluster(stand: Stand, workers: int = 2) -> str:
    stack = await stand.make_stack("cluster", CLUSTER, files=CLUSTER_FILES, parameters={"workers": workers})
    assert stack["stack_status"] == "CREATE_COMPLETE"
    return path_of(stack)


async def mark_unhealthy(stand: Stand, path: str, name: str) -> None:
    (resource,) = (r for r in await stand.resources(path) if r["resource_name"] == name)
    await stand.call("PATCH", resource["links"][0]["href"], {"mark_unhealthy": True})


async def members(stand: Stand, path: str) -> dict[str, str]:
    """Return the physical id of each member by name, oldest first as Heat counts."""
    listed = [r for r in await stand.resources(path) if r["resource_type"] == "worker.yaml"]
    listed.sort(key=lambda r: (r["creation_time"], r["resource_name"]))
    return {r["resource_name"]: r["physical_resource_id"] for r in listed}


async def test_an_update_of_the_capacity_keeps_the_members_that_stay(stand: Stand) -> None:
    path = await a_cluster(stand, workers=2)
    before = await members(stand, path)
    await stand.update_stack(path, parameters={"workers": 4})
    more = await members(stand, path)
    assert len(more) == 4
    assert before.items() <= more.items()
    assert len(stand.machines.specs) == 5


async def test_the_oldest_members_leave_first(stand: Stand) -> None:
    path = await a_cluster(stand, workers=3)
    before = await members(stand, path)
    await stand.update_stack(path, parameters={"workers": 1})
    (stays,) = (await members(stand, path)).items()
    assert stays == list(before.items())[-1]
    assert len(stand.machines.specs) == 2


async def test_a_group_can_be_scaled_to_nothing_and_back(stand: Stand) -> None:
    """Observed on Zed: a desired capacity of 0 counts as none in an update, so the members are marked first."""
    path = await a_cluster(stand)
    await stand.update_stack(path, parameters={"workers": 0})
    assert len(await members(stand, path)) == 2
    for name in await members(stand, path):
        await mark_unhealthy(stand, path, name)
    await stand.update_stack(path, parameters={"workers": 0})
    assert await members(stand, path) == {}
    stack = await stand.update_stack(path, parameters={"workers": 1})
    assert stack["stack_status"] == "UPDATE_COMPLETE"
    assert len(await members(stand, path)) == 1


async def test_members_keep_a_definition_that_failed_until_the_groups_own_changes(stand: Stand) -> None:
    """Observed on Zed: after an update that failed, one with the earlier values fails alike, unless ``resource`` differs."""
    path = path_of(await stand.make_stack("servers", SERVERS, files=CLUSTER_FILES))
    before = await members(stand, path)
    small = {"flavor": "m1.small"}
    failed = await stand.update_stack(path, template=SERVERS, files=CLUSTER_FILES, parameters={"flavor": "none"})
    assert failed["stack_status"] == "UPDATE_FAILED"
    states = [r["resource_status"] for r in await stand.resources(path) if r["resource_type"] == "worker.yaml"]
    assert states.count("UPDATE_FAILED") == 1, "members get a new definition one after another"
    again = await stand.update_stack(path, template=SERVERS, files=CLUSTER_FILES, parameters=small)
    assert again["stack_status"] == "UPDATE_FAILED"
    assert "none" in again["stack_status_reason"]
    other = SERVERS.replace(
        "        type: worker.yaml\n", "        type: worker.yaml\n        metadata: {again: one}\n"
    )
    assert other != SERVERS
    repaired = await stand.update_stack(path, template=other, files=CLUSTER_FILES, parameters=small)
    assert repaired["stack_status"] == "UPDATE_COMPLETE"
    assert await members(stand, path) == before


async def test_a_signal_scales_the_group_and_leaves_the_stacks_own_state(stand: Stand) -> None:
    path = await a_cluster(stand)
    answer = await stand.call("POST", f"{path}/resources/worker_scale_out/signal")
    assert (answer.status, answer.body) == (200, None)
    stack = await stand.settled(path)
    assert stack["stack_status"] == "CREATE_COMPLETE"
    assert len(await members(stand, path)) == 3
    assert len(stack["outputs"][1]["output_value"]) == 3
    group = next(r for r in await stand.resources(path) if r["resource_name"] == "worker_group")
    assert group["resource_status"] == "CREATE_COMPLETE"
    nested = next(link["href"] for link in group["links"] if link["rel"] == "nested")
    shown = await stand.get(nested.removeprefix(stand.base_url))
    assert shown["stack"]["stack_status"] == "UPDATE_COMPLETE"


async def test_an_update_of_nothing_takes_a_group_back_to_its_templates_size(stand: Stand) -> None:
    """Observed on Zed: ``PATCH existing`` removes what signals added, so an update of a scaled stack has to give the
    size."""
    path = await a_cluster(stand, workers=1)
    await stand.call("POST", f"{path}/resources/worker_scale_out/signal")
    await stand.settled(path)
    assert len(await members(stand, path)) == 2
    assert (await stand.update_stack(path, existing=True))["stack_status"] == "UPDATE_COMPLETE"
    assert len(await members(stand, path)) == 1


async def test_a_signal_may_take_effect_only_after_its_answer(stand: Stand) -> None:
    """Observed on Zed: the group stays *_COMPLETE for a second or two after the signal's 200."""
    path = await a_cluster(stand)
    group = next(r for r in await stand.resources(path) if r["resource_name"] == "worker_group")
    nested = next(one for one in stand.stack(path).walk() if one.stack_id == group["physical_resource_id"])
    stand.cloud.durations.change({"signal_s": 0.01})
    assert (await stand.call("POST", f"{path}/resources/worker_scale_out/signal")).status == 200
    await stand.until(lambda: nested.state == "UPDATE_COMPLETE")
    assert len(await members(stand, path)) == 3


async def test_a_signal_while_the_group_is_being_changed_does_nothing(stand: Stand) -> None:
    path = await a_cluster(stand)
    held = stand.faults.add(part="nova", verb="server_boot", effect="hang")
    for _ in range(3):
        assert (await stand.call("POST", f"{path}/resources/worker_scale_out/signal")).status == 200
    stand.faults.remove(held.fault_id)
    await stand.settled(path)
    assert len(await members(stand, path)) == 3


async def test_a_signal_stops_at_the_groups_limits(stand: Stand) -> None:
    path = await a_cluster(stand, workers=0)
    await stand.call("POST", f"{path}/resources/worker_scale_in/signal")
    await stand.settled(path)
    assert await members(stand, path) == {}


async def test_the_alarm_url_signals_without_a_token_but_not_with_another_signature(stand: Stand) -> None:
    path = await a_cluster(stand, workers=1)
    outputs = {o["output_key"]: o["output_value"] for o in (await stand.get(path))["stack"]["outputs"]}
    url = outputs["scale_out_url"]
    async with stand.session.post(url) as answer:
        assert answer.status == 200
    await stand.settled(path)
    assert len(await members(stand, path)) == 2
    async with stand.session.post(url.replace("Signature=", "Signature=0").replace("0Method", "Method")) as answer:
        assert answer.status == 403


async def test_only_a_policy_can_be_signalled(stand: Stand) -> None:
    path = await a_cluster(stand)
    answer = await stand.call("POST", f"{path}/resources/masterNode/signal")
    assert answer.body["error"]["type"] == "ResourceActionNotSupported"


async def test_an_unhealthy_member_is_replaced_under_the_same_name(stand: Stand) -> None:
    path = await a_cluster(stand)
    before = await members(stand, path)
    name = next(iter(before))
    await mark_unhealthy(stand, path, name)
    await stand.update_stack(path)
    after = await members(stand, path)
    assert after.keys() == before.keys()
    assert after[name] != before[name]
    assert len(stand.machines.specs) == 3


async def test_an_unhealthy_server_in_a_member_is_replaced_and_the_member_stays(stand: Stand) -> None:
    path = await a_cluster(stand)
    before = await members(stand, path)
    servers = [r for r in await stand.resources(path) if r["resource_name"] == "VDU"]
    await stand.call("PATCH", servers[0]["links"][0]["href"], {"mark_unhealthy": True})
    await stand.update_stack(path)
    assert await members(stand, path) == before
    after = [r["physical_resource_id"] for r in await stand.resources(path) if r["resource_name"] == "VDU"]
    assert servers[0]["physical_resource_id"] not in after
    assert servers[1]["physical_resource_id"] in after
    assert len(stand.machines.specs) == 3


async def test_a_failure_inside_a_member_names_the_way_to_it(stand: Stand) -> None:
    parameters = {"workers": 1, "flavor": "m1.small"}
    stand.faults.add(
        part="nova", verb="server_boot", node="workerNode", status=500, message="No valid host was found. "
    )
    stack = await stand.make_stack("cluster", CLUSTER, files=CLUSTER_FILES, parameters=parameters)
    (member,) = [r for r in await stand.resources(path_of(stack)) if r["resource_type"] == "worker.yaml"]
    assert stack["stack_status_reason"] == (
        f"Resource CREATE failed: ResourceInError: resources.worker_group.resources.{member['resource_name']}.resources"
        '.VDU: Went to status ERROR due to "Message: No valid host was found. , Code: 500"'
    )
    await stand.delete_stack(path_of(stack))
    assert stand.left() == {}


async def test_a_failed_member_leaves_first_when_the_group_shrinks(stand: Stand) -> None:
    path = await a_cluster(stand, workers=1)
    good = await members(stand, path)
    stand.faults.add(part="nova", verb="server_boot", node="workerNode")
    failed = await stand.update_stack(path, parameters={"workers": 2})
    assert failed["stack_status"] == "UPDATE_FAILED"
    stand.faults.clear()
    await stand.update_stack(path, parameters={"workers": 1})
    assert await members(stand, path) == good


async def test_a_series_has_numbered_members(stand: Stand) -> None:
    def outputs(stack: Json) -> dict[str, Any]:
        return {o["output_key"]: o["output_value"] for o in stack["outputs"]}

    stack = await stand.make_stack("series", SERIES)
    values = outputs(stack)
    assert values["all"] == ["n-0", "n-1"]
    assert values["by_name"] == {"0": "n-0", "1": "n-1"}
    assert values["second"] == "n-1"
    bigger = outputs(await stand.update_stack(path_of(stack), parameters={"count": 3}))
    assert bigger["all"] == ["n-0", "n-1", "n-2"]
    assert bigger["size"][:2] == values["size"]


@pytest.mark.parametrize(
    ("kind", "adjustment", "expected"),
    [
        ("change_in_capacity", 2, 4),
        ("change_in_capacity", 9, 5),
        ("exact_capacity", 1, 1),
        ("percent_change_in_capacity", 50, 3),
        ("percent_change_in_capacity", 10, 3),
        ("percent_change_in_capacity", -60, 1),
    ],
)
async def test_a_policy_computes_the_capacity_as_heat_does(
    stand: Stand, kind: str, adjustment: int, expected: int
) -> None:
    template = VERSION + (
        'resources: {g: {type: "OS::Heat::AutoScalingGroup", properties: {min_size: 0, max_size: 5,'
        ' desired_capacity: 2, resource: {type: "OS::Heat::RandomString"}}}, p: {type: "OS::Heat::ScalingPolicy",'
        f" properties: {{auto_scaling_group_id: {{get_resource: g}}, adjustment_type: {kind},"
        f" scaling_adjustment: {adjustment}}}}}}}\noutputs: {{n: {{value: {{get_attr: [g, current_size]}}}}}}"
    )
    path = path_of(await stand.make_stack("g", template))
    await stand.call("POST", f"{path}/resources/p/signal")
    assert (await stand.settled(path))["outputs"][0]["output_value"] == expected


async def test_a_cooldown_holds_a_second_signal_back(stand: Stand) -> None:
    template = VERSION + (
        'resources: {g: {type: "OS::Heat::AutoScalingGroup", properties: {min_size: 0, max_size: 5, cooldown: 600,'
        ' resource: {type: "OS::Heat::RandomString"}}}, p: {type: "OS::Heat::ScalingPolicy", properties:'
        " {auto_scaling_group_id: {get_resource: g}, adjustment_type: change_in_capacity, scaling_adjustment: 1}}}\n"
        "outputs: {n: {value: {get_attr: [g, current_size]}}}"
    )
    path = path_of(await stand.make_stack("g", template))
    for _ in range(2):
        await stand.call("POST", f"{path}/resources/p/signal")
        stack = await stand.settled(path)
    assert stack["outputs"][0]["output_value"] == 1
