"""Failures: full quotas, missing hosts, and injected faults."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from clouds.openstack_stand import Stand, path_of
from kubevnfm_lab.openstack.settings import CloudSettings
from packages.openstack_templates import SMALL, VERSION

PORT = VERSION + 'resources: {x: {type: "OS::Neutron::Port", properties: {network: net0}}}'
VOLUME = VERSION + 'resources: {x: {type: "OS::Cinder::Volume", properties: {size: 5}}}'
SERVER = VERSION + (
    'resources: {x: {type: "OS::Nova::Server", properties: {flavor: m1.large, image: dummy, networks: [{network: net0}]}}}'
)


@pytest.mark.parametrize(
    ("quota", "template", "reason"),
    [
        (
            {"instances": 0},
            SERVER,
            "Forbidden: resources.x: Quota exceeded for instances: Requested 1, but already used 0 of 0 instances (HTTP 403)",
        ),
        (
            {"cores": 3},
            SERVER,
            "Forbidden: resources.x: Quota exceeded for cores: Requested 4, but already used 0 of 3 cores (HTTP 403)",
        ),
        (
            {"ram": 100},
            SERVER,
            "Forbidden: resources.x: Quota exceeded for ram: Requested 8192, but already used 0 of 100 ram (HTTP 403)",
        ),
        ({"port": 0}, PORT, "OverQuotaClient: resources.x: Quota exceeded for resources: ['port']."),
        (
            {"volumes": 0},
            VOLUME,
            "OverLimit: resources.x: VolumeLimitExceeded: Maximum number of volumes allowed (0) exceeded for quota 'volumes'. (HTTP 413)",
        ),
        (
            {"gigabytes": 4},
            VOLUME,
            "OverLimit: resources.x: VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested 5G, quota is 4G and 0G has been consumed. (HTTP 413)",
        ),
    ],
)
async def test_a_full_quota_fails_the_stack_in_the_services_words(
    stand: Stand, quota: dict[str, int], template: str, reason: str
) -> None:
    stand.cloud.quotas.change(quota)
    stack = await stand.make_stack("full", template)
    assert stack["stack_status"] == "CREATE_FAILED"
    assert stack["stack_status_reason"].startswith(f"Resource CREATE failed: {reason}")
    await stand.delete_stack(path_of(stack))
    assert stand.left() == {}


async def test_use_and_limits_can_be_read_beforehand(stand: Stand) -> None:
    stand.cloud.quotas.change({"instances": 10, "port": 20, "volumes": 30, "gigabytes": 40})
    await stand.make_stack("one", SMALL)
    project = stand.project_id
    limits = (await stand.get("/compute/v2.1/limits"))["limits"]["absolute"]
    assert (limits["maxTotalInstances"], limits["totalInstancesUsed"]) == (10, 1)
    assert (limits["totalCoresUsed"], limits["totalRAMUsed"]) == (1, 2048)
    nova = (await stand.get(f"/compute/v2.1/os-quota-sets/{project}/detail"))["quota_set"]
    assert nova["instances"] == {"in_use": 1, "limit": 10, "reserved": 0}
    assert (await stand.get(f"/compute/v2.1/os-quota-sets/{project}"))["quota_set"]["instances"] == 10
    neutron = (await stand.get(f"/network/v2.0/quotas/{project}/details.json"))["quota"]
    assert neutron["port"] == {"used": 1, "limit": 20, "reserved": 0}
    cinder = (await stand.get(f"{stand.cinder}/os-quota-sets/{project}?usage=True"))["quota_set"]
    assert cinder["volumes"] == {"in_use": 0, "limit": 30, "reserved": 0}


async def test_a_quota_is_released_by_a_delete(stand: Stand) -> None:
    stand.cloud.quotas.change({"instances": 1, "port": 1})
    for name in ("one", "two"):
        stack = await stand.make_stack(name, SMALL)
        assert stack["stack_status"] == "CREATE_COMPLETE"
        await stand.delete_stack(path_of(stack))


async def test_a_server_that_finds_no_host_is_tried_again_and_then_fails(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL, parameters={"flavor": "m1.impossible"})
    assert stack["stack_status_reason"] == (
        "Resource CREATE failed: ResourceInError: resources.server: Went to status ERROR due to"
        ' "Message: No valid host was found. , Code: 500"'
    )
    assert [c["count"] for c in stand.ledger.calls() if c["verb"] == "server_create"] == [6]
    assert len(stand.cloud.nova.servers) == 1


async def test_a_server_that_fails_once_is_made_at_the_second_try(stand: Stand) -> None:
    stand.faults.add(part="nova", verb="server_boot", times=1, message="lost its disk")
    stack = await stand.make_stack("one", SMALL)
    assert stack["stack_status"] == "CREATE_COMPLETE"
    events = (await stand.get(f"{path_of(stack)}/events"))["events"]
    failed = [e for e in events if e["resource_status"] == "CREATE_FAILED"]
    assert len(failed) == 1
    assert "lost its disk" in failed[0]["resource_status_reason"]
    assert len(stand.cloud.nova.servers) == 1


async def test_a_machine_that_cannot_boot_puts_its_server_in_error(stand: Stand) -> None:
    stand.machines.fails_to_boot = "address in use"
    stack = await stand.make_stack("one", SMALL)
    assert stack["stack_status_reason"].endswith('Went to status ERROR due to "Message: address in use, Code: 500"')
    assert [server.status for server in stand.cloud.nova.servers.values()] == ["ERROR"]


async def test_a_service_that_refuses_heat_fails_the_stack_at_once(stand: Stand) -> None:
    stand.faults.add(part="neutron", verb="port_create", status=503, message="come back later")
    stack = await stand.make_stack("one", SMALL)
    assert stack["stack_status_reason"].startswith(
        "Resource CREATE failed: NeutronClientException: resources.port: come"
    )


async def test_a_delete_that_fails_can_be_repeated(stand: Stand) -> None:
    stack = await stand.make_stack("one", SMALL)
    stand.faults.add(part="nova", verb="server_delete", times=1, status=500, message="not now")
    failed = await stand.delete_stack(path_of(stack))
    assert failed["stack_status"] == "DELETE_FAILED"
    assert "not now" in failed["stack_status_reason"]
    assert (await stand.delete_stack(path_of(stack)))["stack_status"] == "DELETE_COMPLETE"
    assert stand.left() == {}


@pytest.mark.parametrize(
    ("part", "verb", "path", "message_of"),
    [
        ("heat", "stack_list", "{heat}/stacks", lambda body: body["error"]["message"]),
        ("nova", "server_list", "/compute/v2.1/servers", lambda body: body["serviceUnavailable"]["message"]),
        ("neutron", "port_list", "/network/v2.0/ports", lambda body: body["NeutronError"]["message"]),
        ("cinder", "volume_list", "{cinder}/volumes", lambda body: body["serviceUnavailable"]["message"]),
        ("glance", "image_list", "/image/v2/images", lambda body: body),
        ("keystone", "project_list", "/identity/v3/projects", lambda body: body["error"]["message"]),
    ],
)
async def test_a_fault_is_reported_in_the_services_own_form(
    stand: Stand, part: str, verb: str, path: str, message_of: Any
) -> None:
    stand.faults.add(part=part, verb=verb, status=503, message="down for lunch")
    answer = await stand.call("GET", path.format(heat=stand.heat, cinder=stand.cinder))
    assert answer.status == 503
    assert "down for lunch" in message_of(answer.body)


async def test_a_dropped_call_gets_no_answer(stand: Stand) -> None:
    stand.faults.add(part="heat", verb="stack_list", effect="drop")
    with pytest.raises(aiohttp.ClientConnectionError):
        await stand.call("GET", f"{stand.heat}/stacks")


async def test_a_hanging_call_continues_when_its_fault_is_removed(stand: Stand) -> None:
    fault = stand.faults.add(part="heat", verb="stack_list", effect="hang")
    call = asyncio.create_task(stand.call("GET", f"{stand.heat}/stacks"))
    await asyncio.wait([call], timeout=0.05)
    assert not call.done()
    stand.faults.remove(fault.fault_id)
    assert (await call).status == 200


async def test_a_fault_can_apply_to_one_machine_only(stand: Stand) -> None:
    stand.faults.add(part="nova", verb="server_create", node="bad*", status=500, message="not you")
    assert (await stand.make_stack("a", SMALL, parameters={"name": "good1"}))["stack_status"] == "CREATE_COMPLETE"
    assert (await stand.make_stack("b", SMALL, parameters={"name": "bad1"}))["stack_status"] == "CREATE_FAILED"


class TestFewHosts:
    @pytest.fixture
    def settings(self) -> CloudSettings:
        return CloudSettings(compute_hosts=2)

    async def test_anti_affinity_spreads_servers_and_fails_when_hosts_are_used_up(self, stand: Stand) -> None:
        def template(count: int) -> str:
            server = (
                '{{type: "OS::Nova::Server", properties: {{flavor: m1.tiny, image: dummy, networks: [{{network: net0}}],'
                " scheduler_hints: {{group: {{get_resource: g}}}}}}}}"
            ).format()
            servers = "".join(f"  s{index}: {server}\n" for index in range(count))
            return f'{VERSION}resources:\n  g: {{type: "OS::Nova::ServerGroup", properties: {{policies: [anti-affinity]}}}}\n{servers}'

        two = await stand.make_stack("two", template(2))
        assert two["stack_status"] == "CREATE_COMPLETE"
        assert {server.host for server in stand.cloud.nova.servers.values()} == {"compute1", "compute2"}
        three = await stand.make_stack("three", template(3))
        assert "No valid host was found" in three["stack_status_reason"]
