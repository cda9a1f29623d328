"""The networks of clusters with Kuryr: what is refused, what is waited for, and that all of Kuryr's is removed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from clouds.openstack_stand import Stand, standing
from kubevnfm_cluster.kuryr import KuryrParameters
from kubevnfm_events.kuryr import (
    AwaitTrunks,
    KuryrNetwork,
    KuryrPrepared,
    KuryrRemoved,
    PrepareKuryr,
    RemoveKuryr,
    TrunksReady,
)
from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.domain.errors import StackMissing
from kubevnfm_infra_openstack.domain.kuryr import LoadBalancer, Removed, Subnet, tag_of
from kubevnfm_infra_openstack.domain.stack import HeatResource, Stack, StackState
from kubevnfm_infra_openstack.kuryr_handlers import KuryrHandlers
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lab.openstack.settings import CloudSettings
from kubevnfm_secrets import KeyRing
from kubevnfm_worker.outcome import Done, NotYet
from worlds.given_vims import GivenVims
from worlds.stack_world import TwinClouds, a_context, openstack_vim

POD_SUBNET = "0d6f7c3b-7d3e-4a7e-9e0e-64a1a1a7b0c2"
KURYR: dict[str, Any] = {
    "pod_security_group_ids": ["pods"],
    "pod_subnet_ids": [POD_SUBNET],
    "service_subnet_id": "services",
    "lbaas_id": "api",
    "worker_nodes_subnet_id": "nodes",
}
TYPES = {
    "pods": "OS::Neutron::SecurityGroup",
    "services": "OS::Neutron::Subnet",
    "nodes": "OS::Neutron::Subnet",
    "api": "OS::Octavia::LoadBalancer",
    "joining": "OS::Neutron::Router",
}
SERVICES = Subnet("10.96.0.0/16", (("10.96.128.1", "10.96.255.253"),), frozenset({"id-of-joining"}))
BALANCER = LoadBalancer("ACTIVE", "10.96.0.1", "id-of-services", frozenset({443}))


def a_prepare(**changes: Any) -> PrepareKuryr:
    return PrepareKuryr(
        vnf_instance_id="i",
        tag="i",
        stack_name="vnf-i",
        vim=openstack_vim("http://cloud/v3"),
        kuryr=KuryrParameters.model_validate({**KURYR, **changes}),
        service_cidr="10.96.0.0/17",
        servers=("m", "w"),
    )


@pytest.fixture
def clouds() -> TwinClouds:
    clouds = TwinClouds()
    stack = Stack(id="s", name="vnf-i", state=StackState.READY, tags=("i",))
    clouds.stacks.stacks["vnf-i"] = stack
    clouds.stacks.resource_list = tuple(
        HeatResource(name, kind, f"id-of-{name}", "CREATE_COMPLETE", "", "s") for name, kind in TYPES.items()
    )
    clouds.kuryr.subnets = {
        POD_SUBNET: Subnet("10.200.0.0/16", (), frozenset({"id-of-joining", "other"})),
        "id-of-services": SERVICES,
    }
    clouds.kuryr.balancers = {"id-of-api": BALANCER}
    clouds.kuryr.trunk_by_server = {"m": "ACTIVE", "w": "ACTIVE"}
    return clouds


async def prepared(clouds: TwinClouds, **changes: Any) -> KuryrNetwork:
    outcome = await KuryrHandlers(clouds, GivenVims()).prepare_kuryr(a_prepare(**changes), a_context())
    assert isinstance(outcome, Done)
    assert isinstance(outcome.event, KuryrPrepared)
    return outcome.event.network


async def test_entities_are_found_by_name_and_by_id(clouds: TwinClouds) -> None:
    """SEQ-016."""
    found = await prepared(clouds, router_id="joining")
    assert found.pod_subnets == (POD_SUBNET,)
    assert found.pod_security_groups == ("id-of-pods",)
    assert (found.service_subnet, found.worker_nodes_subnet) == ("id-of-services", "id-of-nodes")
    assert (found.api_address, found.project_id) == ("10.96.0.1", "project")
    assert found.tag == found.login.credential_id == tag_of("i")


async def test_a_login_of_the_request_is_used_as_it_is(clouds: TwinClouds) -> None:
    login = {"auth_url": "http://k/v3", "username": "u", "password": "p"}
    found = await prepared(clouds, neutron_auth=login)
    assert (found.login.username, found.login.credential_id) == ("u", None)
    assert clouds.kuryr.logins == []


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"lbaas_id": "absent"}, "kuryr_param/lbaas_id", "no OS::Octavia::LoadBalancer absent; fitting: api"),
        ({"lbaas_id": "pods"}, "kuryr_param/lbaas_id", "fitting: api"),
        ({"router_id": "11111111-1111-4111-8111-111111111111"}, "kuryr_param/router_id", "does not join"),
    ],
)
async def test_a_name_that_does_not_fit_is_refused_by_field(
    clouds: TwinClouds, change: dict[str, str], field: str, reason: str
) -> None:
    with pytest.raises(Unprocessable, match=reason) as refused:
        await prepared(clouds, **change)
    assert refused.value.field.endswith(field)


@pytest.mark.parametrize(
    ("subnet", "field", "reason"),
    [
        (Subnet("10.96.0.0/15", SERVICES.pools, SERVICES.routers), "cluster_cidr", "10.96.0.0/16, the lower half"),
        (
            Subnet(SERVICES.cidr, (("10.96.0.2", "10.96.255.253"),), SERVICES.routers),
            "service_subnet_id",
            "is not in 10.96.128.0/17, the upper half",
        ),
        (Subnet(SERVICES.cidr, SERVICES.pools, frozenset()), "octavia_mode", "L3: a router"),
    ],
)
async def test_a_subnet_of_services_that_octavia_would_collide_with_is_refused(
    clouds: TwinClouds, subnet: Subnet, field: str, reason: str
) -> None:
    clouds.kuryr.subnets["id-of-services"] = subnet
    with pytest.raises(Unprocessable, match=reason) as refused:
        await prepared(clouds)
    assert refused.value.field.endswith(field)


@pytest.mark.parametrize(
    ("balancer", "reason"),
    [
        (LoadBalancer("ERROR", "10.96.0.1", "id-of-services", frozenset({443})), "in ERROR"),
        (LoadBalancer("ACTIVE", "10.96.0.2", "id-of-services", frozenset({443})), "10.96.0.1, the first one"),
        (
            LoadBalancer("ACTIVE", "10.96.0.1", "id-of-services", frozenset({6443})),
            "port 443 expected; there are: 6443",
        ),
    ],
)
async def test_a_load_balancer_that_pods_would_not_find_is_refused(
    clouds: TwinClouds, balancer: LoadBalancer, reason: str
) -> None:
    clouds.kuryr.balancers["id-of-api"] = balancer
    with pytest.raises(Unprocessable, match=reason):
        await prepared(clouds)


async def test_an_entity_that_the_project_does_not_have_is_refused_by_field(clouds: TwinClouds) -> None:
    clouds.kuryr.missing = {POD_SUBNET}
    with pytest.raises(Unprocessable, match=f"pod_subnet_ids/0: the project has no subnet {POD_SUBNET}"):
        await prepared(clouds)


async def test_trunks_and_the_load_balancer_are_waited_for(clouds: TwinClouds) -> None:
    handlers = KuryrHandlers(clouds, GivenVims())
    clouds.kuryr.trunk_by_server["w"] = "BUILD"
    assert isinstance(await handlers.prepare_kuryr(a_prepare(), a_context()), NotYet)
    clouds.kuryr.trunk_by_server["w"] = "ACTIVE"
    clouds.kuryr.balancers["id-of-api"] = LoadBalancer("PENDING_UPDATE", *list(vars(BALANCER).values())[1:])
    assert isinstance(await handlers.prepare_kuryr(a_prepare(), a_context()), NotYet)
    # No credential is made before it is needed.
    assert clouds.kuryr.logins == []


async def test_a_node_without_a_trunk_is_refused_unless_its_pods_need_none(clouds: TwinClouds) -> None:
    del clouds.kuryr.trunk_by_server["w"]
    with pytest.raises(Unprocessable, match="server w has no port with a trunk"):
        await prepared(clouds)
    await prepared(clouds, pod_vif_driver="nested-macvlan")


async def test_the_trunks_of_machines_that_join_are_waited_for(clouds: TwinClouds) -> None:
    """C2k: only those of the named machines."""
    handlers, twin = KuryrHandlers(clouds, GivenVims()), clouds.kuryr
    asked = AwaitTrunks(vnf_instance_id="i", vim=openstack_vim("http://cloud/v3"), servers=("w",))
    twin.trunk_by_server = {"m": "DOWN", "w": "BUILD"}
    assert isinstance(await handlers.await_trunks(asked, a_context()), NotYet)
    twin.trunk_by_server["w"] = "ACTIVE"
    assert await handlers.await_trunks(asked, a_context()) == Done(TrunksReady())
    del twin.trunk_by_server["w"]
    with pytest.raises(Unprocessable, match="server w has no port with a trunk"):
        await handlers.await_trunks(asked, a_context())


async def test_a_stack_that_is_gone_is_named(clouds: TwinClouds) -> None:
    clouds.stacks.stacks.clear()
    with pytest.raises(StackMissing, match="vnf-i"):
        await prepared(clouds)


async def test_a_removal_looks_until_it_finds_nothing(clouds: TwinClouds) -> None:
    clouds.kuryr.tagged = [Removed(2, 3), Removed(1, 1)]
    clouds.kuryr.logins = [tag_of("i")]
    outcome = await KuryrHandlers(clouds, GivenVims()).remove_kuryr(a_removal(), a_context())
    assert isinstance(outcome, Done)
    assert outcome.event == KuryrRemoved(load_balancers=2, ports=3)
    assert clouds.kuryr.logins == []


def a_removal(auth_url: str = "http://cloud/v3") -> RemoveKuryr:
    return RemoveKuryr(vnf_instance_id="i", vim=openstack_vim(auth_url))


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with standing(CloudSettings()) as stand:
        yield stand


async def test_everything_with_the_tag_is_removed_from_a_cloud_and_nothing_else(stand: Stand) -> None:
    """As Kuryr leaves it: load balancers with floating IPs, ports on trunks, security groups."""
    cloud, tag = stand.cloud, tag_of("i")
    project, neutron = stand.project_id, stand.cloud.neutron
    net0 = neutron.find_network("net0", project)
    public = neutron.find_network("public", project)
    assert net0 is not None
    assert public is not None
    (subnet_id,) = net0.subnet_ids
    parent, pod, other = (neutron.create_port(project, net0, name=name) for name in ("node", "pod", "other"))
    pod.tags, group = [tag], neutron.create_security_group(project, name="lb")
    group.tags = [tag]
    trunk = cloud.trunks.create(project, parent.record_id)
    for vlan, port in enumerate((pod, other), 1):
        given = {"port_id": port.record_id, "segmentation_type": "vlan", "segmentation_id": vlan}
        cloud.trunks.add(trunk, [given])
    mine = cloud.octavia.create_balancer(project, subnet_id=subnet_id, tags=[tag])
    foreign = cloud.octavia.create_balancer(project, subnet_id=subnet_id)
    neutron.create_floating_ip(project, public, port=neutron.ports[mine.vip_port_id])
    await asyncio.sleep(0)

    async with OpenStackClouds(KeyRing([os.urandom(32)]), threads=4, call_timeout_s=10) as clouds:
        handlers = KuryrHandlers(clouds, GivenVims())
        login = await clouds.cloud(openstack_vim(stand.auth_url)).kuryr.login(tag)
        again = await clouds.cloud(openstack_vim(stand.auth_url)).kuryr.login(tag)
        assert login.credential_id != again.credential_id
        assert set(cloud.identity.application_credentials) == {again.credential_id}
        outcome = await handlers.remove_kuryr(a_removal(stand.auth_url), a_context())
    assert isinstance(outcome, Done)
    assert outcome.event == KuryrRemoved(load_balancers=1, ports=1)
    assert set(cloud.octavia.balancers) == {foreign.record_id}
    assert list(trunk.sub_ports) == [other.record_id]
    assert pod.record_id not in neutron.ports
    assert group.record_id not in neutron.security_groups
    assert neutron.floating_ips == {}
    assert cloud.identity.application_credentials == {}
