"""openstacksdk and python-heatclient work against the cloud as they are."""

from __future__ import annotations

import asyncio
from typing import Any

import openstack
import pytest
from clouds.openstack_stand import Stand
from heatclient import client as heatclient
from heatclient import exc
from keystoneauth1 import session
from keystoneauth1.identity import v3
from openstack import exceptions
from packages.openstack_templates import CLUSTER, CLUSTER_FILES, SMALL, VERSION


def connected(auth_url: str, password: str = "nfv") -> Any:
    return openstack.connect(
        auth_url=auth_url,
        username="nfv",
        password=password,
        project_name="nfv",
        user_domain_name="Default",
        project_domain_name="Default",
        region_name="RegionOne",
    )


async def test_openstacksdk_makes_finds_changes_and_deletes_a_stack(stand: Stand) -> None:
    def use() -> None:
        cloud = connected(stand.auth_url)
        made = cloud.orchestration.create_stack(
            name="sdk", template=CLUSTER, files=CLUSTER_FILES, parameters={"workers": 1}, tags="one,two"
        )
        stack = cloud.orchestration.wait_for_status(
            made, status="CREATE_COMPLETE", failures=["CREATE_FAILED"], interval=0.01
        )
        assert cloud.orchestration.find_stack("sdk").id == stack.id
        assert [one.name for one in cloud.orchestration.stacks(tags=["one"])] == ["sdk"]
        kinds = [r.resource_type for r in cloud.orchestration.resources(stack)]
        assert "OS::Heat::AutoScalingGroup" in kinds
        assert cloud.orchestration.get_stack_template(stack).heat_template_version == "2018-08-31"
        assert cloud.orchestration.get_stack_files(stack).keys() == CLUSTER_FILES.keys()
        assert cloud.orchestration.get_stack_environment(stack).parameters == {"workers": 1}
        assert cloud.orchestration.stack_events(stack)
        server = cloud.compute.find_server("masterNode")
        assert cloud.compute.get_server(server.id).status == "ACTIVE"
        assert [p.name for p in cloud.network.ports(device_id=server.id)]
        assert [v.status for v in cloud.block_storage.volumes()] == ["in-use"]
        cloud.orchestration.delete_stack(stack)
        cloud.orchestration.wait_for_delete(stack, interval=0.01)

    await asyncio.to_thread(use)
    assert stand.left() == {}


async def test_openstacksdk_works_with_every_other_service(stand: Stand) -> None:
    def use() -> None:
        cloud = connected(stand.auth_url)
        assert {f.name for f in cloud.compute.flavors()} >= {"m1.tiny", "m1.large"}
        network = cloud.network.find_network("net0")
        port = cloud.network.create_port(network_id=network.id, name="p")
        image = cloud.create_image(
            "i", data=b"bits", disk_format="raw", container_format="bare", wait=True, validate_checksum=True
        )
        volume = cloud.create_volume(size=1, name="v", wait=True)
        server = cloud.create_server(
            "s", image="ubuntu", flavor="m1.tiny", nics=[{"port-id": port.id}], auto_ip=False, wait=True
        )
        cloud.attach_volume(server, volume, wait=True)
        assert cloud.get_volume("v").attachments[0]["server_id"] == server.id
        cloud.detach_volume(server, volume, wait=True)
        assert cloud.compute.get_server_console_output(server.id)["output"].startswith("booting s")
        group = cloud.compute.create_server_group(name="g", policy="anti-affinity")
        cloud.compute.delete_server_group(group)
        assert cloud.get_compute_limits().total_instances_used == 1
        assert cloud.network.get_quota(stand.project_id, details=True).ports["used"] == 1
        assert cloud.block_storage.get_quota_set(stand.project_id, usage=True).usage["volumes"] == 1
        assert cloud.delete_server("s", wait=True)
        assert cloud.delete_volume("v", wait=True)
        assert cloud.delete_port("p")
        assert cloud.delete_image(image.id, wait=True)

    await asyncio.to_thread(use)
    assert stand.left() == {}


async def test_openstacksdk_says_what_the_cloud_refused(stand: Stand) -> None:
    def use() -> None:
        with pytest.raises(exceptions.SDKException, match=r"requires authentication. .HTTP 401"):
            connected(stand.auth_url, "wrong").authorize()
        cloud = connected(stand.auth_url)
        with pytest.raises(exceptions.BadRequestException, match="No Flavor matching"):
            cloud.orchestration.create_stack(name="bad", template=SMALL, parameters={"flavor": "zz"})
        cloud.orchestration.create_stack(name="twice", template=VERSION)
        with pytest.raises(exceptions.ConflictException, match="already exists"):
            cloud.orchestration.create_stack(name="twice", template=VERSION)
        with pytest.raises(exceptions.NotFoundException):
            cloud.orchestration.get_stack("nothere")
        with pytest.raises(exceptions.NotFoundException):
            cloud.compute.get_server("nothere")

    await asyncio.to_thread(use)


async def test_a_client_whose_token_was_ended_gets_a_new_one_by_itself(stand: Stand) -> None:
    cloud = await asyncio.to_thread(connected, stand.auth_url)
    assert await asyncio.to_thread(lambda: list(cloud.orchestration.stacks())) == []
    stand.cloud.identity.revoke_all()
    assert await asyncio.to_thread(lambda: list(cloud.orchestration.stacks())) == []


async def test_heatclient_makes_updates_signals_and_deletes_a_stack(stand: Stand) -> None:
    def use() -> None:
        auth = v3.Password(
            auth_url=stand.auth_url,
            username="nfv",
            password="nfv",
            project_name="nfv",
            user_domain_id="default",
            project_domain_id="default",
        )
        heat = heatclient.Client("1", session=session.Session(auth=auth), region_name="RegionOne")

        def settled() -> Any:
            while (stack := heat.stacks.get("cli")).status == "IN_PROGRESS":
                pass
            return stack

        heat.stacks.create(stack_name="cli", template=CLUSTER, files=CLUSTER_FILES, parameters={"workers": 1})
        assert settled().stack_status == "CREATE_COMPLETE"
        assert [stack.stack_name for stack in heat.stacks.list(filters={"name": "cli"})] == ["cli"]
        assert (
            len([r for r in heat.resources.list("cli", nested_depth=3) if r.resource_type == "OS::Nova::Server"]) == 2
        )
        heat.stacks.update("cli", existing=True, parameters={"workers": 2})
        assert settled().stack_status == "UPDATE_COMPLETE"
        heat.resources.mark_unhealthy("cli", "masterNode", True, "why not")
        assert heat.resources.get("cli", "masterNode").resource_status == "CHECK_FAILED"
        heat.resources.signal("cli", "worker_scale_out")
        assert heat.stacks.output_show("cli", "master_ip")["output"]["output_value"]
        assert heat.stacks.template("cli")["resources"]
        assert heat.events.list("cli")
        heat.actions.check("cli")
        with pytest.raises(exc.HTTPNotFound):
            heat.stacks.get("nothere")
        with pytest.raises(exc.HTTPBadRequest, match="Template format version not found"):
            heat.stacks.create(stack_name="bad", template="resources: {}")
        heat.stacks.delete("cli")
        while list(heat.stacks.list()):
            pass

    await asyncio.to_thread(use)
    assert stand.left() == {}
