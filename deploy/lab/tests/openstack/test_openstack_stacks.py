"""Stacks: created, found, updated, deleted."""

from __future__ import annotations

from typing import Any

import pytest
from clouds.openstack_stand import Stand, path_of
from kubevnfm_lab.openstack.settings import CloudSettings, Durations
from packages.openstack_templates import CLUSTER, CLUSTER_FILES, SMALL, VERSION

TWO_TESTS = (
    VERSION
    + """
parameters: {value: {type: string, default: one}}
resources:
  first: {type: "OS::Heat::TestResource", properties: {value: {get_param: value}}}
  second: {type: "OS::Heat::TestResource", properties: {value: {get_attr: [first, output]}}}
"""
)


def names(listed: Any) -> list[str]:
    return [stack["stack_name"] for stack in listed["stacks"]]


async def test_a_stack_boots_its_server_on_its_port_and_leaves_nothing_when_it_is_deleted(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL)
    assert stack["stack_status"] == "CREATE_COMPLETE"
    (spec,) = stand.machines.specs.values()
    assert spec.name == "small"
    assert stack["outputs"][0]["output_value"] == str(spec.nics[0].address)
    assert spec.nics[0].network == "net0"
    assert spec.nics[0].address.is_loopback
    deleted = await stand.delete_stack(path_of(stack))
    assert deleted["stack_status"] == "DELETE_COMPLETE"
    assert stand.left() == {}


async def test_everything_of_a_cluster_is_gone_after_its_delete(stand: Stand) -> None:
    stack = await stand.make_stack("cluster", CLUSTER, files=CLUSTER_FILES)
    assert stand.left() == {"stacks": 1, "servers": 3, "ports": 3, "volumes": 1, "machines": 3}
    await stand.delete_stack(path_of(stack))
    assert stand.left() == {}
    assert stand.cloud.engine.stacks == {}
    assert stand.cloud.quotas.used(stand.project_id, "instances") == 0
    assert stand.cloud.quotas.used(stand.project_id, "gigabytes") == 0


async def test_stacks_are_found_by_name_id_tags_and_status(stand: Stand) -> None:
    made = {
        name: await stand.make_stack(name, TWO_TESTS, tags=tags) for name, tags in (("a", "x,y"), ("b", "x"), ("c", ""))
    }
    heat = stand.heat
    assert names(await stand.get(f"{heat}/stacks")) == ["c", "b", "a"]
    assert names(await stand.get(f"{heat}/stacks?name=b")) == ["b"]
    assert names(await stand.get(f"{heat}/stacks?id={made['a']['id']}&id={made['c']['id']}")) == ["c", "a"]
    assert names(await stand.get(f"{heat}/stacks?tags=x")) == ["b", "a"]
    assert names(await stand.get(f"{heat}/stacks?tags=x,y")) == ["a"]
    assert names(await stand.get(f"{heat}/stacks?tags_any=y,z")) == ["a"]
    assert names(await stand.get(f"{heat}/stacks?not_tags=x,y")) == ["c", "b"]
    assert names(await stand.get(f"{heat}/stacks?not_tags_any=x,y")) == ["c"]
    assert names(await stand.get(f"{heat}/stacks?action=CREATE&name=a&name=b")) == ["b", "a"]
    assert names(await stand.get(f"{heat}/stacks?status=COMPLETE")) == ["c", "b", "a"]
    assert names(await stand.get(f"{heat}/stacks?status=FAILED")) == []


async def test_a_list_is_read_page_by_page(stand: Stand) -> None:
    for name in ("a", "b", "c"):
        await stand.make_stack(name, TWO_TESTS)
    first = await stand.get(f"{stand.heat}/stacks?limit=2")
    assert names(first) == ["c", "b"]
    second = await stand.get("/" + first["links"][0]["href"].split("/", 3)[3])
    assert names(second) == ["a"]


async def test_nested_stacks_are_listed_only_when_asked_for(stand: Stand) -> None:
    await stand.make_stack("cluster", CLUSTER, files=CLUSTER_FILES)
    assert names(await stand.get(f"{stand.heat}/stacks")) == ["cluster"]
    assert len(names(await stand.get(f"{stand.heat}/stacks?show_nested=True"))) == 4


async def test_a_deleted_stack_is_still_shown_but_not_listed(stand: Stand) -> None:
    stack = await stand.make_stack("one", TWO_TESTS)
    path = path_of(stack)
    await stand.delete_stack(path)
    assert names(await stand.get(f"{stand.heat}/stacks?name=one")) == []
    assert names(await stand.get(f"{stand.heat}/stacks?show_deleted=true")) == ["one"]
    assert (await stand.get(f"{path}/resources"))["resources"] == []
    assert (await stand.call("PATCH", path, {})).status == 404
    again = await stand.make_stack("one", TWO_TESTS)
    assert again["id"] != stack["id"]
    assert (await stand.call("GET", f"{stand.heat}/stacks/one")).headers["Location"].endswith(again["id"])


async def test_a_stack_of_another_project_is_not_found(stand: Stand) -> None:
    stack = await stand.make_stack("one", TWO_TESTS)
    other = f"/orchestration/v1/{'0' * 32}/stacks"
    assert (await stand.call("GET", other)).status == 403
    assert (await stand.call("GET", path_of(stack).replace("/one/", "/two/"))).status == 404


async def test_a_changed_property_is_updated_in_place_and_what_depends_on_it_too(stand: Stand) -> None:
    stack = await stand.make_stack("one", TWO_TESTS)
    before = {r["resource_name"]: r["physical_resource_id"] for r in await stand.resources(path_of(stack))}
    updated = await stand.update_stack(path_of(stack), parameters={"value": "two"})
    assert updated["stack_status"] == "UPDATE_COMPLETE"
    for resource in await stand.resources(path_of(stack)):
        assert resource["physical_resource_id"] == before[resource["resource_name"]]
        assert resource["resource_status"] == "UPDATE_COMPLETE"
        detail = await stand.get(f"{path_of(stack)}/resources/{resource['resource_name']}")
        assert detail["resource"]["attributes"]["output"] == "two"


async def test_an_update_that_changes_nothing_touches_nothing(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL)
    stand.ledger.clear()
    await stand.update_stack(path_of(stack))
    calls = {(call["part"], call["verb"]) for call in stand.ledger.calls()}
    assert calls == {("heat", "stack_update"), ("heat", "stack_show")}


async def test_an_update_adds_and_removes_resources(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL)
    only_port = VERSION + 'resources: {port2: {type: "OS::Neutron::Port", properties: {network: net1}}}'
    await stand.update_stack(path_of(stack), template=only_port)
    assert [r["resource_name"] for r in await stand.resources(path_of(stack))] == ["port2"]
    assert stand.left() == {"stacks": 1, "ports": 1}


async def test_a_resource_of_another_template_file_is_updated_in_place(stand: Stand) -> None:
    """As Heat: any template file is one kind of resource. A replacement could not have the old port's fixed address."""
    address = str(stand.cloud.addresses.network(0)).rsplit(".", 1)[0] + ".77"
    owner = VERSION + 'resources: {{vdu: {{type: "{name}.yaml", properties: {properties}}}}}'
    fixed = f"fixed_ips: [{{ip_address: {address}}}]"
    port = f'port: {{type: "OS::Neutron::Port", properties: {{network: net0, {fixed}}}}}'
    value = 'value: {type: "OS::Heat::TestResource", properties: {value: {get_param: value}}}'
    files = {
        "before.yaml": f"{VERSION}parameters: {{value: {{type: string}}}}\nresources: {{{port}, {value}}}",
        "after.yaml": f"{VERSION}parameters: {{more: {{type: string}}}}\nresources: {{{port}}}",
    }
    stack = await stand.make_stack("one", owner.format(name="before", properties="{value: one}"), files=files)
    path = path_of(stack)
    assert stack["stack_status"] == "CREATE_COMPLETE"
    before = (await stand.get(f"{path}/resources/vdu"))["resource"]
    (port_id,) = stand.cloud.neutron.ports
    changed = await stand.update_stack(
        path, template=owner.format(name="after", properties="{more: two}"), files={"after.yaml": files["after.yaml"]}
    )
    assert changed["stack_status"] == "UPDATE_COMPLETE", changed["stack_status_reason"]
    after = (await stand.get(f"{path}/resources/vdu"))["resource"]
    assert (after["physical_resource_id"], after["resource_type"]) == (before["physical_resource_id"], "after.yaml")
    assert list(stand.cloud.neutron.ports) == [port_id]
    await stand.update_stack(path, template=VERSION + 'resources: {vdu: {type: "OS::Heat::RandomString"}}')
    assert stand.left() == {"stacks": 1}


async def test_an_unhealthy_server_is_replaced_on_the_same_port(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL)
    path = path_of(stack)
    (old,) = stand.machines.specs.values()
    await stand.call("PATCH", f"{path}/resources/server", {"mark_unhealthy": True, "resource_status_reason": "dead"})
    marked = (await stand.get(f"{path}/resources/server"))["resource"]
    assert (marked["resource_status"], marked["resource_status_reason"]) == ("CHECK_FAILED", "dead")
    healed = await stand.update_stack(path)
    assert healed["stack_status"] == "UPDATE_COMPLETE"
    (new,) = stand.machines.specs.values()
    assert new.machine_id != old.machine_id
    assert new.nics == old.nics
    assert stand.left() == {"stacks": 1, "servers": 1, "ports": 1, "machines": 1}


async def test_the_old_server_goes_only_after_the_new_one_is_there(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL)
    path = path_of(stack)
    await stand.call("PATCH", f"{path}/resources/server", {"mark_unhealthy": True})
    held = stand.faults.add(part="nova", verb="server_delete", effect="hang")
    await stand.call("PATCH", path, {})
    await stand.until(lambda: len(stand.machines.specs) == 2)
    assert len(stand.cloud.nova.servers) == 2
    assert len(stand.cloud.neutron.ports) == 1
    stand.faults.remove(held.fault_id)
    await stand.settled(path)
    assert len(stand.cloud.nova.servers) == 1


async def test_a_replaced_server_takes_its_volume_along(stand: Stand) -> None:
    stack = await stand.make_stack("cluster", CLUSTER, files=CLUSTER_FILES, parameters={"workers": 0})
    path = path_of(stack)
    await stand.call("PATCH", f"{path}/resources/masterNode", {"mark_unhealthy": True})
    await stand.update_stack(path)
    resources = {r["resource_name"]: r for r in await stand.resources(path)}
    (volume,) = stand.cloud.cinder.volumes.values()
    assert [one.server_id for one in volume.attachments] == [resources["masterNode"]["physical_resource_id"]]
    assert resources["storage_attachment"]["resource_status"] == "UPDATE_COMPLETE"


async def test_a_flavor_with_a_smaller_disk_than_the_image_was_put_on_is_refused(stand: Stand) -> None:
    """As Nova 26 does: a rebuild notes the disk of that time, a resize does not."""
    stack = await stand.make_stack("one", SMALL, parameters={"flavor": "m1.tiny"})
    path = path_of(stack)

    async def becomes(flavor: str, *, image: str = "ubuntu") -> tuple[str, str]:
        template = SMALL.replace("image: ubuntu", f"image: {image}")
        after = await stand.update_stack(path, template=template, parameters={"flavor": flavor})
        return after["stack_status"], after["stack_status_reason"]

    for flavor in ("m1.small", "m1.tiny"):
        assert (await becomes(flavor))[0] == "UPDATE_COMPLETE"
    assert (await becomes("m1.small", image="dummy"))[0] == "UPDATE_COMPLETE"
    status, reason = await becomes("m1.tiny")
    assert status == "UPDATE_FAILED"
    assert reason.startswith(
        "Resource UPDATE failed: BadRequest: resources.server: Flavor's disk is smaller than the minimum size specified in"
        " image metadata. Flavor disk is 1073741824 bytes, minimum size is 21474836480 bytes. (HTTP 400) (Request-ID: req-"
    )


async def test_a_failed_create_keeps_its_resources_until_it_is_deleted(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL, parameters={"flavor": "m1.impossible"})
    assert stack["stack_status"] == "CREATE_FAILED"
    states = {r["resource_name"]: r["resource_status"] for r in await stand.resources(path_of(stack))}
    assert states == {"port": "CREATE_COMPLETE", "server": "CREATE_FAILED"}
    await stand.delete_stack(path_of(stack))
    assert stand.left() == {}


async def test_a_failed_create_with_rollback_leaves_an_empty_stack(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL, parameters={"flavor": "m1.impossible"}, disable_rollback=False)
    assert stack["stack_status"] == "ROLLBACK_COMPLETE"
    assert stack["stack_status_reason"] == "Stack ROLLBACK completed successfully"
    assert stand.left() == {"stacks": 1}


async def test_a_failed_update_with_rollback_restores_the_previous_state(stand: Stand) -> None:
    stack = await stand.make_stack("one", TWO_TESTS)
    fails = TWO_TESTS.replace("{get_attr: [first, output]}}", "{get_attr: [first, output]}, fail: true}")
    after = await stand.update_stack(path_of(stack), template=fails, disable_rollback=False)
    assert after["stack_status"] == "ROLLBACK_COMPLETE"
    shown = [
        (e["resource_name"], e["resource_status"])
        for e in (await stand.get(f"{path_of(stack)}/events"))["events"]
        if e["resource_name"] == "one"
    ]
    assert shown[:4] == [
        ("one", "ROLLBACK_COMPLETE"),
        ("one", "ROLLBACK_IN_PROGRESS"),
        ("one", "UPDATE_FAILED"),
        ("one", "UPDATE_IN_PROGRESS"),
    ]


async def test_no_action_starts_after_a_failure_and_running_ones_finish(stand: Stand) -> None:
    template = (
        VERSION
        + """
resources:
  bad: {type: "OS::Heat::TestResource", properties: {fail: true}}
  slow: {type: "OS::Neutron::Port", properties: {network: net0}}
  after: {type: "OS::Heat::RandomString", depends_on: slow}
"""
    )
    held = stand.faults.add(part="neutron", verb="port_create", effect="hang")
    path = await stand.begin_stack("one", template)
    await stand.until(lambda: stand.stack(path).state != "CREATE_IN_PROGRESS")
    stand.faults.remove(held.fault_id)
    stack = await stand.settled(path)
    assert stack["stack_status_reason"] == "Resource CREATE failed: ValueError: resources.bad: Test Resource failed bad"
    states = {r["resource_name"]: r["resource_status"] for r in await stand.resources(path)}
    assert states == {"bad": "CREATE_FAILED", "slow": "CREATE_COMPLETE", "after": "INIT_COMPLETE"}


async def test_a_stack_is_deleted_while_it_is_being_made(stand: Stand) -> None:
    stand.faults.add(part="nova", verb="server_boot", effect="hang")
    path = await stand.begin_stack("one", SMALL)
    await stand.until(lambda: bool(stand.cloud.nova.servers))
    deleted = await stand.delete_stack(path)
    assert deleted["stack_status"] == "DELETE_COMPLETE"
    assert stand.left() == {}


async def test_an_update_of_a_stack_in_progress_waits_for_running_actions_and_then_wins(stand: Stand) -> None:
    held = stand.faults.add(part="nova", verb="server_boot", effect="hang")
    path = await stand.begin_stack("one", SMALL)
    await stand.until(lambda: bool(stand.cloud.nova.servers))
    assert (await stand.call("PATCH", path, {"parameters": {"name": "renamed"}})).status == 202
    assert (await stand.get(path))["stack"]["stack_status"] == "UPDATE_IN_PROGRESS"
    stand.faults.remove(held.fault_id)
    assert (await stand.settled(path))["stack_status"] == "UPDATE_COMPLETE"
    assert [server.name for server in stand.cloud.nova.servers.values()] == ["renamed"]


async def test_an_update_that_failed_is_done_by_the_next_one(stand: Stand) -> None:
    pairs = VERSION + (
        'resources: {p: {type: "OS::Neutron::Port", properties: {network: net0, allowed_address_pairs: %s}}}'
    )
    stack = await stand.make_stack("one", pairs % "[]")
    stand.faults.add(part="neutron", verb="port_update", times=1)
    changed = pairs % "[{ip_address: 1.2.3.4}]"
    failed = await stand.update_stack(path_of(stack), template=changed)
    assert failed["stack_status"] == "UPDATE_FAILED"
    done = await stand.update_stack(path_of(stack), template=changed)
    assert done["stack_status"] == "UPDATE_COMPLETE"
    (port,) = stand.cloud.neutron.ports.values()
    assert port.address_pairs == [{"ip_address": "1.2.3.4", "mac_address": port.mac}]


async def test_a_server_whose_port_moves_to_another_network_keeps_its_id_and_listens_there(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL)
    (before,) = stand.machines.specs.values()
    moved = await stand.update_stack(path_of(stack), template=SMALL.replace("net0", "net1"))
    assert moved["stack_status"] == "UPDATE_COMPLETE", moved["stack_status_reason"]
    (after,) = stand.machines.specs.values()
    assert after.machine_id == before.machine_id
    assert [nic.network for nic in after.nics] == ["net1"]
    assert moved["outputs"][0]["output_value"] == str(after.nics[0].address)
    assert stand.left() == {"stacks": 1, "servers": 1, "ports": 1, "machines": 1}


async def test_a_network_with_someone_elses_port_cannot_be_deleted_until_the_port_is_gone(stand: Stand) -> None:
    template = VERSION + (
        "resources: {n: {type: OS::Neutron::Net}, "
        "s: {type: OS::Neutron::Subnet, properties: {network: {get_resource: n}, cidr: 10.9.0.0/24}}}"
    )
    stack = await stand.make_stack("one", template.replace("OS::Neutron::Net}", '"OS::Neutron::Net"}'))
    net = next(r for r in await stand.resources(path_of(stack)) if r["resource_name"] == "n")
    port = await stand.call(
        "POST", "/network/v2.0/ports", {"port": {"network_id": net["physical_resource_id"], "name": "kuryr"}}
    )
    failed = await stand.delete_stack(path_of(stack))
    assert failed["stack_status"] == "DELETE_FAILED"
    assert failed["stack_status_reason"].startswith("Resource DELETE failed: Conflict: resources.s: Unable to complete")
    await stand.call("DELETE", f"/network/v2.0/ports/{port.body['port']['id']}")
    assert (await stand.delete_stack(path_of(stack)))["stack_status"] == "DELETE_COMPLETE"
    assert stand.left() == {}


async def test_a_missing_server_is_found_by_a_check(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL)
    path = path_of(stack)
    await stand.call("POST", f"{path}/actions", {"check": None})
    assert (await stand.get(path))["stack"]["stack_status"] == "CHECK_COMPLETE"
    (server_id,) = stand.cloud.nova.servers
    await stand.call("DELETE", f"/compute/v2.1/servers/{server_id}")
    await stand.until(lambda: not stand.cloud.nova.servers)
    await stand.call("POST", f"{path}/actions", {"check": None})
    assert (await stand.get(path))["stack"]["stack_status"] == "CHECK_FAILED"
    assert (await stand.update_stack(path))["stack_status"] == "UPDATE_COMPLETE"
    assert len(stand.machines.specs) == 1


async def test_a_suspended_stack_has_suspended_servers_until_it_is_resumed(stand: Stand) -> None:
    stack = await stand.make_stack("one", CLUSTER, files=CLUSTER_FILES, parameters={"workers": 2})
    path, server_ids = path_of(stack), set(stand.cloud.nova.servers)
    assert (await stand.call("POST", f"{path}/actions", {"suspend": None})).status == 200
    assert (await stand.get(path))["stack"]["stack_status"] == "SUSPEND_IN_PROGRESS"
    assert (await stand.settled(path))["stack_status"] == "SUSPEND_COMPLETE"
    assert stand.machines.off == server_ids
    assert {one["resource_status"] for one in await stand.resources(path)} == {"SUSPEND_COMPLETE"}
    assert (await stand.call("PATCH", path, {"existing": True})).body["error"]["type"] == "NotSupported"
    await stand.call("POST", f"{path}/actions", {"resume": None})
    assert (await stand.settled(path))["stack_status"] == "RESUME_COMPLETE"
    assert not stand.machines.off
    assert {server.status for server in stand.cloud.nova.servers.values()} == {"ACTIVE"}
    assert (await stand.update_stack(path, existing=True))["stack_status"] == "UPDATE_COMPLETE"
    assert (await stand.delete_stack(path))["stack_status"] == "DELETE_COMPLETE"


async def test_a_server_that_is_gone_cannot_be_suspended(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL)
    path = path_of(stack)
    (server_id,) = stand.cloud.nova.servers
    await stand.call("DELETE", f"/compute/v2.1/servers/{server_id}")
    await stand.until(lambda: not stand.cloud.nova.servers)
    await stand.call("POST", f"{path}/actions", {"suspend": None})
    failed = await stand.settled(path)
    assert failed["stack_status"] == "SUSPEND_FAILED"
    assert f"Failed to find server {server_id}" in failed["stack_status_reason"]


async def test_a_retained_resource_outlives_its_stack(stand: Stand) -> None:
    template = VERSION + (
        'resources: {v: {type: "OS::Cinder::Volume", deletion_policy: retain, properties: {size: 1}}}'
    )
    stack = await stand.make_stack("one", template)
    await stand.delete_stack(path_of(stack))
    assert stand.left() == {"volumes": 1}


class TestTimes:
    @pytest.fixture
    def settings(self) -> CloudSettings:
        return CloudSettings(durations=Durations(server_create_s=30.0, stack_minute_s=0.02))

    async def test_a_stack_that_takes_longer_than_its_minutes_times_out(self, stand: Stand) -> None:
        stack = await stand.make_stack("one", SMALL, timeout_mins=1)
        assert (stack["stack_status"], stack["stack_status_reason"]) == ("CREATE_FAILED", "Timed out")
        states = {r["resource_name"]: r["resource_status"] for r in await stand.resources(path_of(stack))}
        assert states["server"] == "CREATE_FAILED"

    async def test_a_stack_without_minutes_has_no_limit(self, stand: Stand) -> None:
        path = await stand.begin_stack("one", TWO_TESTS)
        assert (await stand.settled(path))["stack_status"] == "CREATE_COMPLETE"
