"""Load balancers (Octavia) and trunks (Neutron), as openstacksdk and Heat use them."""

from __future__ import annotations

import asyncio
from typing import Any

import openstack
import pytest
from clouds.openstack_stand import Json, Stand
from openstack import exceptions

BALANCED: Json = {
    "heat_template_version": "2018-08-31",
    "parameters": {name: {"type": "string"} for name in ("cidr", "vip", "from", "gateway")},
    "resources": {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {
                "network": {"get_resource": "net"},
                "cidr": {"get_param": "cidr"},
                "gateway_ip": {"get_param": "gateway"},
                "allocation_pools": [{"start": {"get_param": "from"}, "end": {"get_param": "from"}}],
            },
        },
        "balancer": {
            "type": "OS::Octavia::LoadBalancer",
            "properties": {"vip_subnet": {"get_resource": "subnet"}, "vip_address": {"get_param": "vip"}},
        },
        "listener": {
            "type": "OS::Octavia::Listener",
            "properties": {"loadbalancer": {"get_resource": "balancer"}, "protocol": "TCP", "protocol_port": 8443},
        },
        "pool": {
            "type": "OS::Octavia::Pool",
            "properties": {
                "listener": {"get_resource": "listener"},
                "protocol": "TCP",
                "lb_algorithm": "ROUND_ROBIN",
            },
        },
        "member": {
            "type": "OS::Octavia::PoolMember",
            "properties": {
                "pool": {"get_resource": "pool"},
                "address": {"get_attr": ["port", "fixed_ips", 0, "ip_address"]},
                "protocol_port": 6443,
            },
        },
        "port": {"type": "OS::Neutron::Port", "properties": {"network": "net0"}},
        "trunk": {"type": "OS::Neutron::Trunk", "properties": {"port": {"get_resource": "port"}}},
        "node": {
            "type": "OS::Nova::Server",
            "properties": {
                "image": "ubuntu",
                "flavor": "m1.tiny",
                "networks": [{"port": {"get_attr": ["trunk", "port_id"]}}],
            },
        },
    },
}
PARAMETERS = {"cidr": "10.98.0.0/24", "vip": "10.98.0.1", "from": "10.98.0.128", "gateway": "10.98.0.254"}


def connected(stand: Stand) -> Any:
    return openstack.connect(
        auth_url=stand.auth_url,
        username="nfv",
        password="nfv",
        project_name="nfv",
        user_domain_name="Default",
        project_domain_name="Default",
        region_name="RegionOne",
    )


def balancer_of(cloud: Any, **facts: Any) -> Any:
    """Return a new load balancer on net0 that is ACTIVE."""
    subnet = cloud.network.find_subnet("subnet0")
    made = cloud.load_balancer.create_load_balancer(vip_subnet_id=subnet.id, **facts)
    return settled(cloud, made)


def settled(cloud: Any, balancer: Any) -> Any:
    return cloud.load_balancer.wait_for_load_balancer(balancer.id, interval=0.01)


async def test_openstacksdk_makes_a_balancer_that_forwards_connections(stand: Stand) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    def make() -> str:
        cloud = connected(stand)
        balancer = balancer_of(cloud, name="b", tags=["mine"])
        assert cloud.network.get_port(balancer.vip_port_id).device_owner == "Octavia"
        octavia = cloud.load_balancer
        listener = octavia.create_listener(load_balancer_id=balancer.id, protocol="TCP", protocol_port=18443)
        settled(cloud, balancer)
        pool = octavia.create_pool(listener_id=listener.id, protocol="TCP", lb_algorithm="ROUND_ROBIN")
        settled(cloud, balancer)
        octavia.create_member(pool, address="127.0.0.1", protocol_port=port)
        settled(cloud, balancer)
        assert octavia.get_listener(listener.id).default_pool_id == pool.id
        assert [one.protocol_port for one in octavia.members(pool)] == [port]
        assert [one.id for one in octavia.load_balancers(tags=["mine"])] == [balancer.id]
        assert list(octavia.load_balancers(tags=["other"])) == []
        return str(balancer.vip_address)

    address = await asyncio.to_thread(make)
    reader, writer = await asyncio.open_connection(address, 18443)
    assert await reader.read() == b"here"
    writer.close()
    server.close()

    def delete() -> None:
        cloud = connected(stand)
        balancer = cloud.load_balancer.find_load_balancer("b")
        with pytest.raises(exceptions.BadRequestException, match="it has children"):
            cloud.load_balancer.delete_load_balancer(balancer.id)
        cloud.load_balancer.delete_load_balancer(balancer.id, cascade=True)
        cloud.load_balancer.wait_for_delete(balancer, interval=0.01)

    await asyncio.to_thread(delete)
    assert stand.left() == {}
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection(address, 18443)


async def test_a_balancer_cannot_be_changed_while_it_changes(stand: Stand) -> None:
    stand.cloud.durations.balancer_change_s = 3600.0
    subnet = await stand.get("/network/v2.0/subnets?name=subnet0")
    body = {"loadbalancer": {"vip_subnet_id": subnet["subnets"][0]["id"]}}
    made = await stand.call("POST", "/load-balancer/v2/lbaas/loadbalancers", body)
    assert made.status == 201
    balancer = made.body["loadbalancer"]
    assert balancer["provisioning_status"] == "PENDING_CREATE"
    listener = {"listener": {"loadbalancer_id": balancer["id"], "protocol": "TCP", "protocol_port": 80}}
    refused = await stand.call("POST", "/load-balancer/v2/lbaas/listeners", listener)
    assert refused.status == 409
    assert refused.body == {
        "faultcode": "Client",
        "faultstring": f"Load Balancer {balancer['id']} is immutable and cannot be updated.",
        "debuginfo": None,
    }
    refused = await stand.call("DELETE", f"/load-balancer/v2/lbaas/loadbalancers/{balancer['id']}?cascade=true")
    assert (refused.status, refused.body["faultstring"]) == (
        409,
        f"Invalid state PENDING_CREATE of loadbalancer resource {balancer['id']}",
    )


async def test_a_subnet_stays_as_long_as_a_balancer_is_on_it(stand: Stand) -> None:
    def use() -> None:
        cloud = connected(stand)
        network = cloud.network.create_network(name="services")
        subnet = cloud.network.create_subnet(
            network_id=network.id,
            ip_version=4,
            cidr="10.96.0.0/24",
            gateway_ip="10.96.0.254",
            allocation_pools=[{"start": "10.96.0.128", "end": "10.96.0.253"}],
        )
        # Outside of the pool: by hand only, so Octavia's own port never takes such an address.
        made = cloud.load_balancer.create_load_balancer(vip_subnet_id=subnet.id, vip_address="10.96.0.1")
        balancer = settled(cloud, made)
        assert balancer.vip_address == "10.96.0.1"
        others = [one.address for port in stand.cloud.neutron.ports_of_network(network.id) for one in port.fixed_ips]
        assert sorted(others) == ["10.96.0.1", "10.96.0.128"]
        with pytest.raises(exceptions.ConflictException, match="One or more ports"):
            cloud.network.delete_subnet(subnet.id)
        cloud.load_balancer.delete_load_balancer(balancer.id)
        cloud.load_balancer.wait_for_delete(balancer, interval=0.01)
        cloud.network.delete_network(network.id)

    await asyncio.to_thread(use)
    assert stand.left() == {}


async def test_openstacksdk_adds_ports_to_a_trunk_and_takes_them_off(stand: Stand) -> None:
    def use() -> None:
        cloud = connected(stand)
        network = cloud.network.find_network("net0")
        parent, first, second = (cloud.network.create_port(network_id=network.id, name=n) for n in ("p", "a", "b"))
        trunk = cloud.network.create_trunk(port_id=parent.id, name="t")
        assert trunk.status == "DOWN"
        cloud.create_server(
            "s", image="ubuntu", flavor="m1.tiny", nics=[{"port-id": parent.id}], auto_ip=False, wait=True
        )
        assert cloud.network.get_trunk(trunk.id).status == "ACTIVE"

        def tagged(port: Any, vlan: int) -> list[Json]:
            return [{"port_id": port.id, "segmentation_type": "vlan", "segmentation_id": vlan}]

        cloud.network.add_trunk_subports(trunk, tagged(first, 7))
        assert cloud.network.get_port(first.id).device_owner == "trunk:subport"
        assert cloud.network.get_port(first.id).status == "ACTIVE"
        with pytest.raises(exceptions.ConflictException, match="segmentation_id 7 already in use"):
            cloud.network.add_trunk_subports(trunk, tagged(second, 7))
        for port, name in ((first, "a subport"), (parent, "a parent port")):
            with pytest.raises(exceptions.ConflictException, match=f"currently {name} for trunk"):
                cloud.network.delete_port(port.id)
        with pytest.raises(exceptions.ConflictException, match="parent port for trunk"):
            cloud.network.create_trunk(port_id=parent.id)
        cloud.network.delete_trunk_subports(trunk, [{"port_id": first.id}])
        assert cloud.network.get_trunk_subports(trunk)["sub_ports"] == []
        cloud.delete_server("s", wait=True)
        cloud.network.delete_trunk(trunk.id)
        for port in (parent, first, second):
            cloud.network.delete_port(port.id)

    await asyncio.to_thread(use)
    assert stand.left() == {}


async def test_a_port_that_a_server_has_cannot_become_the_parent_of_a_trunk(stand: Stand) -> None:
    def use() -> None:
        cloud = connected(stand)
        port = cloud.network.create_port(network_id=cloud.network.find_network("net0").id)
        cloud.create_server(
            "s", image="ubuntu", flavor="m1.tiny", nics=[{"port-id": port.id}], auto_ip=False, wait=True
        )
        with pytest.raises(exceptions.ConflictException, match="not eligible for use as a parent port"):
            cloud.network.create_trunk(port_id=port.id)

    await asyncio.to_thread(use)


async def test_heat_makes_and_deletes_balancers_and_trunks(stand: Stand) -> None:
    def use() -> None:
        cloud = connected(stand)
        made = cloud.orchestration.create_stack(name="kuryr", template=BALANCED, parameters=PARAMETERS)
        stack = cloud.orchestration.wait_for_status(
            made, status="CREATE_COMPLETE", failures=["CREATE_FAILED"], interval=0.01
        )
        (balancer,) = cloud.load_balancer.load_balancers()
        assert (balancer.vip_address, balancer.provisioning_status) == ("10.98.0.1", "ACTIVE")
        (pool,) = cloud.load_balancer.pools()
        (member,) = cloud.load_balancer.members(pool)
        assert member.protocol_port == 6443
        (trunk,) = cloud.network.trunks()
        assert trunk.status == "ACTIVE"
        cloud.orchestration.delete_stack(stack)
        cloud.orchestration.wait_for_delete(stack, interval=0.01)

    await asyncio.to_thread(use)
    assert stand.left() == {}


async def test_heat_cannot_delete_the_subnet_of_a_balancer_that_is_not_its_own(stand: Stand) -> None:
    def use() -> None:
        cloud = connected(stand)
        template = {**BALANCED, "resources": {name: BALANCED["resources"][name] for name in ("net", "subnet")}}
        made = cloud.orchestration.create_stack(name="kuryr", template=template, parameters=PARAMETERS)
        stack = cloud.orchestration.wait_for_status(made, status="CREATE_COMPLETE", interval=0.01)
        subnet = cloud.orchestration.get(f"/stacks/kuryr/{stack.id}/resources/subnet").json()["resource"]
        foreign = {"vip_subnet_id": subnet["physical_resource_id"], "vip_address": "10.98.0.9"}
        settled(cloud, cloud.load_balancer.create_load_balancer(**foreign))
        cloud.orchestration.delete_stack(stack)
        failed = cloud.orchestration.wait_for_status(stack, status="DELETE_FAILED", interval=0.01)
        assert "One or more ports have an IP allocation from this subnet" in failed.status_reason

    await asyncio.to_thread(use)
