"""The handlers over OpenStack's protocols in the lab: the facts they report, and the errors."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from kubevnfm_csar.files import FolderFiles
from kubevnfm_csar.vnfd.read import read_vnfd
from kubevnfm_events.stacks import ResourcesCreated, StackResources, UserData
from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.adapters.package_flavours import CachedFlavours
from kubevnfm_infra_openstack.adapters.user_data_process import UserDataProcess
from kubevnfm_infra_openstack.domain.errors import (
    BaseHotMissing,
    QuotaExceeded,
    StackFailed,
    StackRefused,
    VimAccessDataMissing,
    VimRefused,
    VimUnavailable,
)
from kubevnfm_infra_openstack.domain.grace import GracePeriods
from kubevnfm_infra_openstack.domain.ordering import StackOrders
from kubevnfm_infra_openstack.domain.resources import stack_resources
from kubevnfm_infra_openstack.domain.stack import SETTLED, StackOrder, StackState
from kubevnfm_infra_openstack.handlers import InfraOpenstackHandlers
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import VnfmError
from kubevnfm_lab.lab import Lab, LabSettings
from kubevnfm_lab.openstack.settings import CloudSettings
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done, NotYet
from patience import until_true
from worlds.given_vims import GivenVims
from worlds.stack_world import PACKAGE, FolderPackages, a_context, a_create, a_delete, openstack_vim

RING = KeyRing.from_text(KeyRing.new_key())


class Site:
    """The handlers and their lab."""

    def __init__(self, lab: Lab, clouds: OpenStackClouds, store: SqliteStore, packages: FolderPackages) -> None:
        flavours = CachedFlavours(packages)
        self.lab, self.clouds, self.packages = lab, clouds, packages
        self.handlers = InfraOpenstackHandlers(
            clouds=clouds,
            vims=GivenVims(),
            packages=flavours,
            orders=StackOrders(flavours, UserDataProcess(Limits(trust_packages=True)), RING),
            grace=GracePeriods(store, SystemClock()),
        )

    async def create(self, *, attempt: int = 1, **changes: Any) -> StackResources:
        command = a_create(changes.pop("vim", None) or openstack_vim(self.lab.auth_url), **changes)
        outcome = await self.handlers.create_resources(command, a_context(attempt=attempt))
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, ResourcesCreated)
        return outcome.event.resources

    async def delete(self) -> None:
        command = a_delete(openstack_vim(self.lab.auth_url))
        assert isinstance(await self.handlers.delete_resources(command, a_context()), Done)


@pytest.fixture
def quotas() -> dict[str, int]:
    return {}


@pytest.fixture
async def site(tmp_path: Path, quotas: dict[str, int]) -> AsyncIterator[Site]:
    settings = LabSettings(cloud=CloudSettings(quotas=quotas, create_retries=0))
    async with (
        Lab.start(settings) as lab,
        OpenStackClouds(RING, threads=16, call_timeout_s=60) as clouds,
        SqliteStore.open(tmp_path / "store.db") as store,
    ):
        yield Site(lab, clouds, store, FolderPackages())


async def test_servers_are_reported_with_vdu_group_member_ports_and_volumes(site: Site) -> None:
    facts = await site.create()
    assert [server.vdu_id for server in facts.servers] == ["masterNode", "workerNode", "workerNode"]
    master, *workers = facts.servers
    assert (master.group, master.member, master.stack_id) == (None, None, facts.stack_id)
    assert {worker.group for worker in workers} == {"worker_instance"}
    assert len({worker.member for worker in workers} | {worker.stack_id for worker in workers}) == 4
    for worker in workers:
        (port,) = worker.ports
        assert port.name == "workerNode_CP1"
        assert port.addresses
        assert port.subnet_cidrs[0].endswith("/24")
    assert master.image_id
    assert master.host
    assert [(volume.name, volume.server_id) for volume in facts.volumes] == [("storage_volume", master.server_id)]


async def test_the_level_decides_the_number_of_servers(site: Site) -> None:
    facts = await site.create(request={**a_create().request, "instantiationLevelId": "large"})
    assert len(facts.servers) == 5
    assert all(server.server_name for server in facts.servers)


async def test_a_vnfc_has_the_same_facts_at_each_reading(site: Site) -> None:
    assert await site.create() == await site.create()


async def test_after_a_delete_nothing_is_left(site: Site) -> None:
    await site.create()
    await site.delete()
    await site.delete()
    cloud = site.lab.cloud
    assert not cloud.nova.servers
    assert not cloud.cinder.volumes


async def test_wrong_credentials_fail_and_are_never_shown(site: Site) -> None:
    with pytest.raises(VimRefused, match="Keystone") as caught:
        await site.create(vim=openstack_vim(site.lab.auth_url, password="wrong-secret"))
    assert not caught.value.retryable
    assert "wrong-secret" not in str(caught.value)


async def test_missing_access_data_are_named(site: Site) -> None:
    with pytest.raises(VimAccessDataMissing, match="accessInfo/username"):
        await site.create(vim=openstack_vim(site.lab.auth_url, username=""))


async def test_a_stopped_vim_is_a_retryable_error(site: Site) -> None:
    with pytest.raises(VimUnavailable) as caught:
        await site.create(vim=openstack_vim("http://127.0.0.1:9/v3"))
    assert caught.value.retryable


async def test_a_vim_that_fails_once_is_used_again(site: Site) -> None:
    site.lab.faults.add(part="heat", verb="stack_create", effect="fail", status=503, message="busy", times=1)
    with pytest.raises(VimUnavailable, match="busy"):
        await site.create()
    assert len((await site.create()).servers) == 3


async def test_a_lost_answer_creates_no_second_stack(site: Site) -> None:
    """Heat has begun, but its answer was lost: the next delivery finds the stack by name and tag."""
    site.lab.faults.add(part="heat", verb="resource_list", effect="drop", times=1)
    with pytest.raises(VimUnavailable):
        await site.create()
    await site.create()
    created = [call["count"] for call in site.lab.ledger.calls() if call["verb"] == "stack_create"]
    assert created == [1]


async def test_a_rejection_quotes_heats_reason(site: Site) -> None:
    nfv = {"VDU": {"masterNode": {"flavor": "m1.missing"}}}
    with pytest.raises(StackRefused, match=r"m1\.missing"):
        await site.create(request={**a_create().request, "additionalParams": {"nfv": nfv}})


async def test_the_deepest_failed_resource_is_the_reason_and_a_retry_replaces_the_stack(site: Site) -> None:
    nfv = {"VDU": {"workerNode": {"flavor": "m1.impossible"}}}
    request = {**a_create().request, "additionalParams": {"nfv": nfv}}
    with pytest.raises(StackFailed, match=r"workerNode \(OS::Nova::Server\).*No valid host was found"):
        await site.create(request=request)
    with pytest.raises(StackFailed):
        await site.create(request=request)
    assert len((await site.create(attempt=2)).servers) == 3


async def test_a_stack_that_is_deleted_during_its_creation_is_created_again(site: Site) -> None:
    """Observed on Zed: Heat cancels its work first, so the stack is CREATE_FAILED for a moment."""
    site.lab.cloud.durations.change({"stack_cancel_s": 0.5})
    held = site.lab.faults.add(part="nova", verb="server_boot", node="*", effect="hang")
    command = a_create(openstack_vim(site.lab.auth_url))
    running = asyncio.create_task(site.handlers.create_resources(command, a_context()))

    async def boots() -> bool:
        return any(call["verb"] == "server_boot" for call in site.lab.ledger.calls())

    await until_true(boots)
    stacks = site.clouds.cloud(command.vim).stacks
    stack = await stacks.find(command.stack_name, tag=command.tag)
    assert stack is not None
    await stacks.delete(stack)
    assert isinstance(await running, NotYet)
    site.lab.faults.remove(held.fault_id)
    while isinstance(outcome := await site.handlers.create_resources(command, a_context()), NotYet):
        pass
    assert isinstance(outcome, Done)


@pytest.mark.parametrize(
    ("quotas", "message"),
    [
        ({"instances": 2}, "quota of servers exceeded: 3 wanted, 2 free"),
        ({"ram": 4096}, r"quota of RAM \(MiB\) exceeded: 6144 wanted, 4096 free"),
        ({"volumes": 0}, "quota of volumes exceeded: 1 wanted, 0 free"),
        ({"port": 1}, "quota of ports exceeded: 3 wanted, 1 free"),
    ],
)
async def test_an_exceeded_quota_fails_before_anything_is_created(site: Site, message: str) -> None:
    with pytest.raises(QuotaExceeded, match=message):
        await site.create()
    assert not any(call["verb"] == "stack_create" for call in site.lab.ledger.calls())


async def test_the_packages_images_are_uploaded_once_and_deleted_with_the_vnf(site: Site, tmp_path: Path) -> None:
    root = copytree(PACKAGE, tmp_path / "package")
    vnfd = root / "Definitions/vnfd.yaml"
    artifact = "artifacts: {sw_image: {type: tosca.artifacts.nfv.SwImage, file: ../Files/images/ubuntu.img}}"
    vnfd.write_text(
        vnfd.read_text().replace("      capabilities: &compute\n", f"      {artifact}\n      capabilities: &compute\n")
    )
    site.packages.root, site.packages.images = root, {"Files/images/ubuntu.img": b"x" * 100_000}
    facts = await site.create()
    assert facts == await site.create()
    (image_id,) = facts.images
    master = next(server for server in facts.servers if server.vdu_id == "masterNode")
    assert master.image_id == image_id
    await site.delete()
    assert [call["count"] for call in site.lab.ledger.calls() if call["verb"] == "image_upload"] == [1]
    assert image_id not in site.lab.cloud.glance.images


async def test_every_error_names_its_layer(site: Site) -> None:
    site.lab.faults.add(part="heat", verb="*", effect="fail", status=500, message="boom", times=1)
    with pytest.raises(VnfmError) as caught:
        await site.create()
    assert caught.value.title == "VIM unavailable"
    assert "Heat: 500" in str(caught.value)


SAMPLES = Path(__file__).parents[3] / "deploy/samples"


@pytest.mark.parametrize("name", ["vm", "cluster"])
async def test_the_sample_packages_become_servers(site: Site, name: str) -> None:
    site.packages.root = SAMPLES / name
    request = json.loads((SAMPLES / name / "requests/instantiate.json").read_text())
    params = request.get("additionalParams", {})
    path = params.get("lcm-operation-user-data")
    user_data = UserData(path=path, class_name=params["lcm-operation-user-data-class"]) if path else None
    facts = await site.create(flavour_id=request["flavourId"], request=request, user_data=user_data)
    vnfd = read_vnfd(FolderFiles(SAMPLES / name)).flavour(request["flavourId"])
    counts = Counter(server.vdu_id for server in facts.servers)
    assert counts == vnfd.initial_counts(request.get("instantiationLevelId"))


FLOATING = """
heat_template_version: 2018-08-31
resources:
  router: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: public}}}
  legs:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: subnet0}
  cp: {type: OS::Neutron::Port, properties: {network: net0}}
  cp_floating_ip:
    type: OS::Neutron::FloatingIP
    depends_on: legs
    properties: {floating_network: public, port_id: {get_resource: cp}}
"""


async def test_a_floating_ip_is_reported_by_itself_and_with_its_port(site: Site) -> None:
    cloud = site.clouds.cloud(openstack_vim(site.lab.auth_url))
    stack = await cloud.stacks.create(StackOrder("fip", FLOATING, {}, {}, ("t",), 60))
    made = await cloud.stacks.settle(stack, until=SETTLED, within_s=60)
    assert made is not None
    assert made.state is StackState.READY, made.reason
    ports = {p.name: p for p in stack_resources(made, await cloud.stacks.contents(made), {}).ports}
    assert ports["cp"].floating_address == ports["cp_floating_ip"].floating_address is not None
    assert ports["cp_floating_ip"].addresses == ()


async def test_a_package_without_heat_templates_is_deployed_from_its_topology(site: Site, tmp_path: Path) -> None:
    site.packages.root = Path(copytree(PACKAGE, tmp_path / "package", ignore=lambda *_: {"BaseHOT"}))
    facts = await site.create()
    assert [server.vdu_id for server in facts.servers] == ["masterNode", "workerNode", "workerNode"]
    assert {port.name for port in facts.ports} == {"masterNode_CP1", "workerNode_CP1-0", "workerNode_CP1-1"}
    with pytest.raises(BaseHotMissing, match="BaseHOT/simple"):
        await site.create(
            tag="t-2", stack_name="vnf-2", user_data=UserData(path="UserData/cluster_v1.py", class_name="C")
        )
