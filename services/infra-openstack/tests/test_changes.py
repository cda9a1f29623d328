"""Changes of stacks over OpenStack's protocols in the lab: which resources stay, which are new, what a repeat does."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_csar.documents import parse_heat_yaml
from kubevnfm_events import PackageRef
from kubevnfm_events.stacks import (
    ChangeConnections,
    ChangeTemplate,
    HealResources,
    LeftPackage,
    OperateServers,
    ResourcesChanged,
    ResourcesCreated,
    RestoreResources,
    ScaleResources,
    ServerFacts,
    ServersOperated,
    ShownResource,
    StackCommand,
    StackResources,
    UserData,
)
from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.adapters.package_flavours import CachedFlavours
from kubevnfm_infra_openstack.adapters.user_data_process import UserDataProcess
from kubevnfm_infra_openstack.change_handlers import StackChangeHandlers
from kubevnfm_infra_openstack.domain.changes import StackChanges
from kubevnfm_infra_openstack.domain.errors import (
    QuotaExceeded,
    ServerNotOperable,
    StackMissing,
    StackNotAsAsked,
    StackUpdateFailed,
    StackUpdateRefused,
    VduNotScalable,
)
from kubevnfm_infra_openstack.domain.grace import GracePeriods
from kubevnfm_infra_openstack.domain.ordering import StackOrders
from kubevnfm_infra_openstack.domain.snapshots import StackSnapshots
from kubevnfm_infra_openstack.domain.user_data import creation_of
from kubevnfm_infra_openstack.handlers import InfraOpenstackHandlers
from kubevnfm_infra_openstack.server_handlers import ServerHandlers
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_lab.lab import Lab, LabSettings
from kubevnfm_lab.openstack.settings import CloudSettings
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing, hide
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done, NotYet, StepContext
from patience import until_true
from worlds.given_vims import GivenVims
from worlds.stack_world import PACKAGE, C, FolderPackages, a_change, a_context, a_create, links, openstack_vim

RING = KeyRing.from_text(KeyRing.new_key())


class Site:
    """The handlers over a lab, with a stack of one master, two workers and a volume."""

    def __init__(self, lab: Lab, clouds: OpenStackClouds, store: SqliteStore) -> None:
        self.lab, self.packages = lab, FolderPackages()
        flavours = CachedFlavours(self.packages)
        orders, grace = (
            StackOrders(flavours, UserDataProcess(Limits(trust_packages=True)), RING),
            GracePeriods(store, SystemClock()),
        )
        self.creating = InfraOpenstackHandlers(
            clouds=clouds, vims=GivenVims(), packages=flavours, orders=orders, grace=grace
        )
        self.handlers = StackChangeHandlers(
            clouds=clouds,
            vims=GivenVims(),
            changes=StackChanges(orders),
            snapshots=StackSnapshots(store, RING),
            grace=GracePeriods(store, SystemClock()),
        )
        self.servers = ServerHandlers(clouds=clouds, vims=GivenVims(), grace=grace)

    async def create(self, **changes: Any) -> StackResources:
        outcome = await self.creating.create_resources(
            a_create(openstack_vim(self.lab.auth_url), **changes), a_context()
        )
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, ResourcesCreated)
        return outcome.event.resources

    def command(self, kind: type[C], **changes: Any) -> C:
        return a_change(kind, openstack_vim(self.lab.auth_url), **changes)

    async def do(self, command: StackCommand, context: StepContext) -> StackResources:
        """Carry out a command; return what the stack holds after that."""
        return (await self.event(command, context)).resources

    async def event(self, command: StackCommand, context: StepContext) -> ResourcesChanged:
        """Carry out a command; return its event."""
        handle: Any = {
            ScaleResources: self.handlers.scale_resources,
            HealResources: self.handlers.heal_resources,
            ChangeConnections: self.handlers.change_connections,
            ChangeTemplate: self.handlers.change_template,
            RestoreResources: self.handlers.restore_resources,
        }[type(command)]
        while True:
            outcome = await handle(command, context)
            if not isinstance(outcome, NotYet):
                break
            await asyncio.sleep(outcome.again_in_s / 20)
        assert isinstance(outcome, Done)
        assert isinstance(outcome.event, ResourcesChanged)
        return outcome.event

    async def scale(self, workers: int, operation: str = "op-2", **changes: Any) -> StackResources:
        command = self.command(ScaleResources, counts={"masterNode": 1, "workerNode": workers}, **changes)
        return await self.do(command, a_context(operation_id=operation, step_id="scale"))

    def updates(self) -> int:
        """Return how often Heat was asked to change a stack."""
        calls = self.lab.ledger.calls()
        return sum(call["count"] for call in calls if (call["part"], call["verb"]) == ("heat", "stack_update"))


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with (
        Lab.start(LabSettings(cloud=CloudSettings(create_retries=0))) as lab,
        OpenStackClouds(RING, threads=16, call_timeout_s=60) as clouds,
        SqliteStore.open(tmp_path / "store.db") as store,
    ):
        yield Site(lab, clouds, store)


def copy_of_package(site: Site, folder: Path, name: str, *changes: tuple[str, str]) -> PackageRef:
    """Add a package whose top template differs by these replacements; return it."""
    shutil.copytree(PACKAGE, folder / name)
    hot = folder / name / "BaseHOT/simple/cluster.yaml"
    text = hot.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    hot.write_text(text)
    site.packages.root = folder / name
    return PackageRef(package_id=name, vnfd_id=name, checksum=name)


def shown(*stacks: StackResources) -> tuple[ShownResource, ...]:
    """Return what an instance with these stacks shows."""
    return tuple(
        ShownResource(resource_type="OS::Nova::Server", name=one.name, resource_id=one.server_id, stack_id=one.stack_id)
        for stack in stacks
        for one in stack.servers
    )


def ids(resources: StackResources, vdu: str = "workerNode") -> set[str]:
    return {server.server_id for server in resources.servers if server.vdu_id == vdu}


def addresses(servers: list[ServerFacts]) -> set[str]:
    return {address for server in servers for port in server.ports for address in port.addresses}


async def test_scale_out_adds_servers_and_leaves_the_others_alone(site: Site) -> None:
    before = await site.create()
    after = await site.scale(4)
    assert len(ids(after)) == 4
    assert ids(before) < ids(after)
    assert ids(before, "masterNode") == ids(after, "masterNode")


async def test_secrets_among_the_stacks_parameters_stay_hidden_whatever_their_names(site: Site) -> None:
    """The request lists ``imsi`` as secret; a later operation knows it from the instance."""
    request = {"flavourId": "simple", "extVirtualLinks": links()}
    given = {"additionalParams": {"nfv": {"VDU": {"workerNode": {"imsi": "26201-4711", "flavor": "m1.small"}}}}}
    before = await site.create(request=hide({**request, **given}, ["imsi"]))
    instance = {"instantiatedVnfInfo": {"flavourId": "simple", "metadata": {"nfv": before.nfv}}}
    after = await site.scale(3, instance=instance)
    for reported in (before, after):
        worker = reported.nfv["VDU"]["workerNode"]
        assert (worker["flavor"], worker["imsi"].reveal(RING)) == ("m1.small", "26201-4711")
        assert "26201-4711" not in reported.model_dump_json()


async def test_scale_in_removes_exactly_the_named_servers(site: Site) -> None:
    before = await site.create()
    now = await site.scale(4)
    newest = sorted(ids(now) - ids(before))[0]
    after = await site.scale(3, "op-3", leaving=(newest,))
    assert ids(after) == ids(now) - {newest}
    assert len(site.lab.cloud.nova.servers) == 4


async def test_a_repeated_scale_reaches_heat_once_for_each_attempt(site: Site) -> None:
    await site.create()
    first = await site.scale(3)
    assert await site.scale(3) == first
    assert site.updates() == 1


async def test_a_scale_beyond_the_quota_fails_before_anything_is_created(site: Site) -> None:
    await site.create()
    site.lab.cloud.quotas.change({"instances": 4})
    with pytest.raises(QuotaExceeded, match="servers"):
        await site.scale(5)
    assert site.updates() == 0


async def test_a_rolling_update_needs_room_for_what_comes_and_for_what_leaves_last(site: Site, tmp_path: Path) -> None:
    await site.create()
    site.lab.cloud.quotas.change({"volumes": 1})
    package = copy_of_package(site, tmp_path, "other", ("storage_volume", "other_volume"))
    request = a_create().request
    command = site.command(ChangeTemplate, request=request, package=package, unchanged=("worker_instance",))
    with pytest.raises(QuotaExceeded, match="quota of volumes exceeded: 1 wanted, 0 free"):
        await site.do(command, a_context(operation_id="op-2", step_id="change"))
    assert site.updates() == 0


async def test_a_vdu_without_a_group_cannot_be_scaled(site: Site) -> None:
    await site.create()
    command = site.command(ScaleResources, counts={"masterNode": 2, "workerNode": 2})
    with pytest.raises(VduNotScalable, match="masterNode"):
        await site.do(command, a_context(operation_id="op-2"))
    assert site.updates() == 0


async def test_the_rollback_of_a_scale_out_restores_the_previous_servers(site: Site) -> None:
    before = await site.create()
    await site.scale(4)
    command = site.command(RestoreResources, staying=tuple(ids(before) | ids(before, "masterNode")))
    after = await site.do(command, a_context(operation_id="op-2", step_id="scale", attempt=2))
    assert after == before


def with_mac(mac: str | None) -> dict[str, Any]:
    """Return links with an entry for the master's port."""
    entry = {"cpProtocolData": [{"ipOverEthernet": {"macAddress": mac}}]}
    cps = [{"cpdId": "masterNode_CP1", "cpConfig": {"a": entry}}]
    return {"extVirtualLinks": [{"id": "l", "resourceId": "net0", "extCps": cps}]}


async def test_a_step_that_leaves_a_stack_as_it_was_is_compared_with_what_that_showed(site: Site) -> None:
    before = await site.create()
    master, other_mac = before.servers[0], "fa:16:3e:00:00:09"
    port = master.ports[0]
    assert master.vdu_id == "masterNode"
    moved = master.model_copy(update={"ports": (port.model_copy(update={"mac": other_mac}),)})
    resized = tuple(one.model_copy(update={"flavor": "m1.large"}) for one in before.servers)
    another = before.servers[1].model_copy(update={"server_id": "lost", "stack_id": "elsewhere"})
    staying = tuple(ids(before) | ids(before, "masterNode"))
    await site.scale(3)  # otherwise there is nothing to restore
    restore, heal = site.command(RestoreResources, staying=staying), site.command(HealResources)
    for number, command in enumerate((restore, heal)):
        # An entry that the stack did not have before is none of this step.
        fitting = [(with_mac(port.mac), before), (with_mac(other_mac), before), ({}, None)]
        for attempt, (known, shown) in enumerate(fitting, start=2):
            context = a_context(operation_id="op-2", step_id=f"back-{number}", attempt=attempt)
            assert await site.do(command.model_copy(update={"before": shown, "connections_before": known}), context)
        for text, known, servers in (
            (f"asked for MAC {other_mac}", with_mac(other_mac), (moved, *before.servers[1:])),
            ("asked for flavor m1.large", with_mac(port.mac), resized),
            ("asked for 3 machines, shown 2", {}, (*before.servers, another)),
        ):
            shown = before.model_copy(update={"servers": servers})
            with pytest.raises(StackNotAsAsked, match=text):
                await site.do(command.model_copy(update={"before": shown, "connections_before": known}), context)
        # A heal also makes the machines again that an earlier one has lost; a rollback adds none.
        fewer = command.model_copy(update={"before": before.model_copy(update={"servers": before.servers[:2]})})
        with pytest.raises(StackNotAsAsked, match="asked for 1 machines, shown 2") if number == 0 else nullcontext():
            await site.do(fewer, context)


async def test_a_heal_with_another_definition_is_not_compared_with_the_earlier_one(site: Site) -> None:
    facts = await site.create()
    cloud = site.handlers.clouds.cloud(openstack_vim(site.lab.auth_url))
    before = facts.model_copy(
        update={"servers": tuple(one.model_copy(update={"flavor": "m1.large"}) for one in facts.servers)}
    )
    heal = site.command(HealResources, before=before, servers=tuple(ids(facts)))
    left = {"left_package": LeftPackage(package=heal.package)}
    classed = {"user_data": UserData(path="UserData/it.py", class_name="It")}
    for changes, vdus in (({}, "masterNode.*workerNode"), (left, "masterNode"), (classed, "masterNode")):
        with pytest.raises(StackNotAsAsked, match=f"VDU {vdus}: asked for flavor m1.large") as raised:
            await site.creating.orders.check_as_asked(cloud, facts, heal.model_copy(update=changes))
        assert ("workerNode" in str(raised.value)) is (not changes)
    everything = {**left, "servers": (*ids(facts), *ids(facts, "masterNode"))}
    await site.creating.orders.check_as_asked(cloud, facts, heal.model_copy(update=everything))


def test_a_class_makes_the_stack_of_another_package_with_all_its_machines(site: Site) -> None:
    added = {"id": "a", "type": "COMPUTE", "resourceTemplateId": "workerNode"}
    heal = site.command(
        HealResources,
        request={"flavourId": "simple"},
        counts={"masterNode": 1, "workerNode": 3},
        grant_request={"operation": "HEAL", "addResources": [added], "removeResources": [{"id": "r"}]},
        instance={"id": "i", "instantiationState": "INSTANTIATED", "instantiatedVnfInfo": {"flavourId": "simple"}},
    )
    made = creation_of(heal)
    assert made.grant_request.keys() == {"operation", "addResources"}
    assert made.grant_request["operation"] == "INSTANTIATE"
    counted = Counter(one["resourceTemplateId"] for one in made.grant_request["addResources"])
    assert made.grant_request["addResources"][0] == added
    assert counted == {"masterNode": 1, "workerNode": 3}
    assert made.instance == {"id": "i", "instantiationState": "NOT_INSTANTIATED"}
    assert (made.package, made.tag, made.request) == (heal.package, heal.tag, heal.request)


async def test_a_rolling_step_is_compared_by_the_machines_that_it_has_changed(site: Site) -> None:
    facts = await site.create()
    vim = openstack_vim(site.lab.auth_url)
    cloud = site.handlers.clouds.cloud(vim)
    grants = {
        vdu: {"vimAssets": {"computeResourceFlavours": [{"vnfdVirtualComputeDescId": vdu, "vimFlavourId": "m1.large"}]}}
        for vdu in ("masterNode", "workerNode")
    }

    async def check(vdu: str, **changes: Any) -> None:
        await site.creating.orders.check_as_asked(
            cloud, facts, site.command(ChangeTemplate, grant=grants[vdu], **changes)
        )

    await check("workerNode", unchanged=("worker_instance",))
    await check("workerNode", changed_vdus=("masterNode",))
    for vdu, changes in (
        ("masterNode", {"unchanged": ("worker_instance",)}),
        ("workerNode", {"changed_vdus": ("workerNode",)}),
    ):
        with pytest.raises(StackNotAsAsked, match=f"of VDU {vdu}: asked for flavor m1.large"):
            await check(vdu, **changes)


async def test_restoring_an_unchanged_stack_does_nothing(site: Site) -> None:
    before = await site.create()
    command = site.command(RestoreResources, staying=tuple(ids(before)))
    assert await site.do(command, a_context(operation_id="op-2")) == before
    assert site.updates() == 0


async def test_heal_replaces_the_named_server_and_keeps_its_address(site: Site) -> None:
    before = await site.create()
    broken = next(server for server in before.servers if server.vdu_id == "workerNode")
    command = site.command(HealResources, servers=(broken.server_id,))
    after = await site.do(command, a_context(operation_id="op-2", step_id="heal"))
    new = [server for server in after.servers if server.server_id not in ids(before) | ids(before, "masterNode")]
    assert len(new) == 1
    assert broken.server_id not in ids(after)
    assert ids(before) - {broken.server_id} < ids(after)
    assert addresses(new) == addresses([broken])
    assert {volume.resource_id for volume in after.volumes} == {volume.resource_id for volume in before.volumes}
    again = await site.do(command, a_context(operation_id="op-2", step_id="heal", attempt=2))
    assert again == after, "a server that was replaced is not replaced again"


async def test_a_heal_that_heat_will_refuse_touches_no_machine(site: Site) -> None:
    before = await site.create()
    images = site.lab.cloud.glance.images
    (image,) = (one for one in images.values() if one.name == "ubuntu")
    del images[image.image_id]
    command = site.command(HealResources, servers=tuple(ids(before)))
    with pytest.raises(StackUpdateRefused, match="ubuntu"):
        await site.do(command, a_context(operation_id="op-2", step_id="heal"))
    images[image.image_id] = image
    after = await site.scale(1, operation="op-3")
    assert ids(after) < ids(before), "no machine was marked for a replacement"


async def test_heal_also_replaces_a_named_volume(site: Site) -> None:
    before = await site.create()
    (master,) = ids(before, "masterNode")
    (volume,) = before.volumes
    command = site.command(HealResources, servers=(master,), volumes=(volume.resource_id,))
    after = await site.do(command, a_context(operation_id="op-2", step_id="heal"))
    assert ids(after, "masterNode") != {master}
    assert [one.resource_id for one in after.volumes] != [volume.resource_id]


async def test_heal_gives_a_volume_that_is_not_named_to_the_new_server(site: Site) -> None:
    """The old server is stopped and deleted first: Heat would make the new one before that."""
    before = await site.create()
    (master,) = ids(before, "masterNode")
    (volume,) = before.volumes
    after = await site.do(
        site.command(HealResources, servers=(master,)), a_context(operation_id="op-2", step_id="heal")
    )
    (new,) = ids(after, "masterNode")
    assert [(one.resource_id, one.server_id) for one in after.volumes] == [(volume.resource_id, new)]
    calls = {(call["part"], call["verb"]) for call in site.lab.ledger.calls()}
    assert {("nova", "server_action"), ("nova", "server_delete")} < calls
    assert site.updates() == 1


def boot_from_volumes(site: Site, folder: Path, name: str, *, data: str = "", goes: str = "false") -> PackageRef:
    """Add a package whose machines boot from volumes, with this user data; return it.

    ``goes``: whether Nova deletes the volume of a worker with its server.
    """
    shutil.copytree(PACKAGE, folder / name)
    hots = folder / name / "BaseHOT/simple"
    master = parse_heat_yaml((hots / "cluster.yaml").read_text(), name="hot")
    worker = parse_heat_yaml((hots / "nested/worker.yaml").read_text(), name="hot")
    for hot, server, volume in ((master, "masterNode", "storage_volume"), (worker, "workerNode", "root")):
        made = hot["resources"].setdefault(volume, {"type": "OS::Cinder::Volume", "properties": {"size": 1}})
        properties = hot["resources"][server]["properties"]
        made["properties"]["image"] = properties.pop("image")
        drive = {"volume_id": {"get_resource": volume}, "boot_index": 0}
        properties["block_device_mapping_v2"] = [drive | ({"delete_on_termination": goes} if volume == "root" else {})]
        properties |= {"user_data_format": "RAW", "user_data": data}
    del master["resources"]["storage_attachment"]
    (hots / "cluster.yaml").write_text(json.dumps(master))
    (hots / "nested/worker.yaml").write_text(json.dumps(worker))
    site.packages.root = folder / name
    return PackageRef(package_id=name, vnfd_id=name, checksum=name)


def drives(resources: StackResources) -> dict[str, str]:
    """Return the volumes by the server that has them."""
    return {str(one.server_id): one.resource_id for one in resources.volumes}


@pytest.mark.parametrize("goes", ["false", "true"])
async def test_a_heal_replaces_servers_that_boot_from_volumes(site: Site, tmp_path: Path, goes: str) -> None:
    """In the stack and in a group. The volumes stay, but for one that the template lets go with its server."""
    package = boot_from_volumes(site, tmp_path, "boots", goes=goes)
    before = await site.create(package=package)
    healed = (*ids(before, "masterNode"), sorted(ids(before))[0])
    command = site.command(HealResources, servers=healed, package=package)
    if goes == "true":
        keeping = command.model_copy(update={"request": {"additionalParams": {"x_keep_volume": True}}})
        with pytest.raises(Unprocessable, match="Nova deletes it with its server"):
            await site.do(keeping, a_context(operation_id="op-1", step_id="heal"))
        assert {one.server_id for one in before.servers} == set(site.lab.cloud.nova.servers)
    after = await site.do(command, a_context(operation_id="op-2", step_id="heal"))
    assert len(after.servers) == 3
    assert not {one.server_id for one in after.servers} & {*healed}
    assert addresses([*after.servers]) == addresses([*before.servers])
    kept, new = set(drives(before).values()), set(drives(after).values())
    assert len(kept & new) == (3 if goes == "false" else 2)
    assert set(drives(after)) == {one.server_id for one in after.servers}
    assert set(site.lab.cloud.cinder.volumes) == new, "no volume is left behind"


async def test_a_heal_that_fails_is_restored_with_the_volume_and_the_address(site: Site, tmp_path: Path) -> None:
    """The error shows what remains; the rollback leaves the other machines alone."""
    package = boot_from_volumes(site, tmp_path, "boots")
    before = await site.create(package=package)
    (master,) = ids(before, "masterNode")
    site.lab.faults.add(part="nova", verb="server_boot", node="*", times=1, message="no disk")
    command = site.command(HealResources, servers=(master,), package=package, shown=shown(before))
    with pytest.raises(StackUpdateFailed, match="no disk") as caught:
        await site.do(command, a_context(operation_id="op-2", step_id="heal"))
    assert caught.value.remains is not None
    assert master not in ids(caught.value.remains, "masterNode")
    assert ids(caught.value.remains) == ids(before)
    restore = site.command(RestoreResources, package=package, staying=tuple(s.server_id for s in before.servers))
    after = await site.do(restore, a_context(operation_id="op-2", step_id="heal", attempt=2))
    assert ids(after) == ids(before)
    assert ids(after, "masterNode") not in ({master}, set())
    assert addresses([*after.servers]) == addresses([*before.servers])
    assert set(drives(after).values()) == set(drives(before).values())
    assert len(site.lab.cloud.nova.servers) == 3


async def test_a_change_replaces_servers_that_boot_from_volumes_and_back(site: Site, tmp_path: Path) -> None:
    """Heat gives a server no other user data in place. A change that it refuses deletes nothing.

    Volumes that go with their servers are made again, also where a server left before the change or a try failed.
    """
    package = boot_from_volumes(site, tmp_path, "first", data="one", goes="true")
    before = await site.create(package=package)
    changed = boot_from_volumes(site, tmp_path, "second", data="two", goes="true")
    command = site.command(ChangeTemplate, request=a_create().request, package=changed, shown=shown(before))
    site.lab.faults.add(part="heat", verb="stack_preview", node="*", times=1, status=400, message="no such key")
    with pytest.raises(StackUpdateRefused, match="no such key"):
        await site.do(command, a_context(operation_id="op-2", step_id="change"))
    assert {one.server_id for one in before.servers} == set(site.lab.cloud.nova.servers)
    site.lab.faults.add(part="nova", verb="server_boot", node="*", times=1, message="no disk")
    with pytest.raises(StackUpdateFailed, match="no disk"):
        await site.do(command, a_context(operation_id="op-2", step_id="change", attempt=2))
    after = await site.do(command, a_context(operation_id="op-2", step_id="change", attempt=3))
    assert not {one.server_id for one in after.servers} & {one.server_id for one in before.servers}
    assert {server.user_data for server in site.lab.cloud.nova.servers.values()} == {"two"}
    staying = tuple(server.server_id for server in before.servers)
    restore = site.command(RestoreResources, package=package, staying=staying, shown=shown(before, after))
    back = await site.do(restore, a_context(operation_id="op-2", step_id="change", attempt=4))
    assert {server.user_data for server in site.lab.cloud.nova.servers.values()} == {"one"}
    assert len(back.servers) == 3
    of_three = [set(drives(one).values()) for one in (before, after, back)]
    assert len(set.intersection(*of_three)) == 1, "the master's stays"
    assert len(set.union(*of_three)) == 7, "a worker's does not"
    assert set(site.lab.cloud.cinder.volumes) == of_three[-1], "no volume is left behind"


async def test_a_server_whose_replacement_failed_stays_among_what_remains(site: Site, tmp_path: Path) -> None:
    """Heat no longer lists it. It runs without ports until the next change that succeeds deletes it."""
    before = await site.create()
    (master,) = ids(before, "masterNode")
    package = copy_of_package(
        site, tmp_path, "other", ("      name: masterNode\n", "      name: masterNode\n      user_data: two\n")
    )
    command = site.command(ChangeTemplate, request=a_create().request, package=package, shown=shown(before))
    site.lab.faults.add(part="nova", verb="server_boot", node="*", times=1, message="no disk")
    with pytest.raises(StackUpdateFailed, match="no disk") as caught:
        await site.do(command, a_context(operation_id="op-2", step_id="change"))
    assert caught.value.remains is not None
    assert master in ids(caught.value.remains, "masterNode")
    old = next(one for one in caught.value.remains.servers if one.server_id == master)
    assert old.vnfc_id == next(one.vnfc_id for one in before.servers if one.server_id == master)
    restore = site.command(RestoreResources, staying=tuple(one.server_id for one in before.servers))
    after = await site.do(restore, a_context(operation_id="op-2", step_id="change", attempt=2))
    assert len(after.servers) == len(site.lab.cloud.nova.servers) == 3
    assert ids(after) == ids(before)


async def test_a_restored_stack_has_the_servers_again_that_were_deleted_first(site: Site, tmp_path: Path) -> None:
    """The operation was cancelled after the deletion: Heat knows nothing of it yet, nor of the volume that went too.

    One that was only stopped runs again.
    """
    package = boot_from_volumes(site, tmp_path, "boots", goes="true")
    before = await site.create(package=package)
    (master,), (worker, stopped) = ids(before, "masterNode"), sorted(ids(before))
    await site.scale(3, package=package)
    for one in (master, worker):
        await site.lab.cloud.nova.destroy(site.lab.cloud.nova.servers[one])
    await site.lab.cloud.nova.stop(site.lab.cloud.nova.servers[stopped])
    staying = tuple(one.server_id for one in before.servers)
    restore = site.command(RestoreResources, package=package, staying=staying)
    after = await site.do(restore, a_context(operation_id="op-2", step_id="scale", attempt=2))
    assert ids(after) & ids(before) == {stopped}
    assert len(ids(after)) == 2

    async def runs() -> bool:
        return site.lab.cloud.nova.servers[stopped].status == "ACTIVE"

    await until_true(runs)
    assert len(ids(after, "masterNode") - {master}) == 1
    assert set(site.lab.cloud.cinder.volumes) == set(drives(after).values())


async def test_a_heal_after_a_scale_keeps_the_number_of_servers(site: Site) -> None:
    await site.create()
    scaled = await site.scale(4)
    command = site.command(HealResources, servers=(sorted(ids(scaled))[0],))
    after = await site.do(command, a_context(operation_id="op-3", step_id="heal"))
    assert len(ids(after)) == 4
    assert len(ids(after) & ids(scaled)) == 3


async def test_connection_points_move_to_another_network_and_back(site: Site) -> None:
    before = await site.create()
    wanted = {"extVirtualLinks": links("net1")}
    command = site.command(ChangeConnections, request=wanted, connections=wanted)
    after = await site.do(command, a_context(operation_id="op-2", step_id="connect"))
    assert not addresses(list(after.servers)) & addresses(list(before.servers))
    networks = {port.network_id for server in (*before.servers, *after.servers) for port in server.ports}
    assert len(networks) == 2
    restore = site.command(RestoreResources, staying=tuple(s.server_id for s in before.servers))
    back = await site.do(restore, a_context(operation_id="op-2", step_id="connect", attempt=2))
    assert {p.network_id for s in back.servers for p in s.ports} == {
        p.network_id for s in before.servers for p in s.ports
    }


async def test_a_connection_point_without_a_parameter_is_named(site: Site) -> None:
    await site.create()
    wanted = {"extVirtualLinks": [{"id": "l", "resourceId": "net1", "extCps": [{"cpdId": "nowhere", "cpConfig": {}}]}]}
    with pytest.raises(Unprocessable, match="nowhere"):
        await site.do(
            site.command(ChangeConnections, request=wanted, connections=wanted), a_context(operation_id="op-2")
        )


async def test_another_template_replaces_the_first(site: Site) -> None:
    before = await site.create()
    command = site.command(
        ChangeTemplate, request={**a_create().request, "instantiationLevelId": "large"}, instantiation_level_id="large"
    )
    after = await site.do(command, a_context(operation_id="op-2", step_id="change"))
    assert len(ids(after)) == 4
    assert ids(before) < ids(after)


async def test_a_failed_change_reports_the_reason_and_the_present_resources(site: Site) -> None:
    before = await site.create()
    site.lab.faults.add(part="nova", verb="server_boot", node="*", times=1, message="no disk")
    with pytest.raises(StackUpdateFailed, match="no disk") as caught:
        await site.scale(3)
    assert caught.value.remains is not None
    assert ids(before) <= ids(caught.value.remains)
    command = site.command(ScaleResources, counts={"masterNode": 1, "workerNode": 3})
    after = await site.do(command, a_context(operation_id="op-2", step_id="scale", attempt=2))
    assert len(ids(after)) == 3


async def test_a_missing_stack_is_reported(site: Site) -> None:
    with pytest.raises(StackMissing, match="stack vnf-inst-1 does not exist") as caught:
        await site.scale(3)
    assert caught.value.made_nothing, "a rollback has nothing to restore"


@pytest.mark.parametrize("cancelling_s", [0.0, 0.5], ids=["at once", "shown as failed first"])
async def test_a_stack_that_is_deleted_by_hand_during_a_change_has_nothing_to_restore(
    site: Site, cancelling_s: float
) -> None:
    """Observed on Zed: Heat cancels its work first, so the stack is UPDATE_FAILED for a moment."""
    site.lab.cloud.durations.change({"stack_cancel_s": cancelling_s})
    await site.create()
    site.lab.faults.add(part="nova", verb="server_boot", node="*", effect="hang")
    site.lab.ledger.clear()
    running = asyncio.create_task(site.scale(3))

    async def boots() -> bool:
        return any(call["verb"] == "server_boot" for call in site.lab.ledger.calls())

    await until_true(boots)
    stacks = site.handlers.clouds.cloud(openstack_vim(site.lab.auth_url)).stacks
    stack = await stacks.find("vnf-inst-1", tag="inst-1")
    assert stack is not None
    await stacks.delete(stack)
    site.lab.faults.clear()
    with pytest.raises(StackMissing) as caught:
        await running
    # A later look finds no stack, so there is nothing to restore; the look in which the change began does not know that.
    assert caught.value.made_nothing == bool(cancelling_s)
    command = site.command(RestoreResources, staying=())
    event = await site.event(command, a_context(operation_id="op-2", attempt=2))
    assert event.is_missing


async def test_a_server_that_was_deleted_by_hand_is_healed_at_its_address(site: Site) -> None:
    before = await site.create()
    lost = next(server for server in before.servers if server.vdu_id == "workerNode")
    await site.lab.cloud.nova.destroy(site.lab.cloud.nova.get(lost.server_id))
    command = site.command(HealResources, servers=(lost.server_id,))
    after = await site.do(command, a_context(operation_id="op-2", step_id="heal"))
    (new,) = [server for server in after.servers if server.server_id not in ids(before) | ids(before, "masterNode")]
    assert addresses([new]) == addresses([lost])
    assert len(after.servers) == len(before.servers)


async def test_the_reversal_of_an_operate_leaves_out_what_was_deleted_by_hand(site: Site) -> None:
    before = await site.create()
    servers = tuple(server.server_id for server in before.servers)
    await site.lab.cloud.nova.destroy(site.lab.cloud.nova.get(servers[0]))
    command = OperateServers(
        vnf_instance_id="inst-1", vim=openstack_vim(site.lab.auth_url), servers=servers, state="STOPPED"
    )
    with pytest.raises(ServerNotOperable, match="no such server"):
        await site.servers.operate_servers(command, a_context())
    # Others reboot another one meanwhile.
    rebooted = site.lab.cloud.nova.servers[servers[1]]
    rebooted.status = "REBOOT"
    asyncio.get_running_loop().call_later(0.1, setattr, rebooted, "status", "ACTIVE")
    outcome = await site.servers.operate_servers(command.model_copy(update={"existing_only": True}), a_context())
    assert isinstance(outcome, Done)
    assert {site.lab.cloud.nova.get(one).status for one in servers[1:]} == {"SHUTOFF"}


async def test_the_packages_user_data_decides_the_operation_and_is_compared_with_what_was_asked(site: Site) -> None:
    user_data = UserData(path="UserData/scaling_v2.py", class_name="ScalingUserData")
    await site.create(user_data=user_data, grant_request={"addResources": []})
    with pytest.raises(StackNotAsAsked, match="asked for 3 machines, shown 5") as error:
        await site.scale(
            3,
            user_data=user_data,
            request={"type": "SCALE_OUT", "aspectId": "worker_instance"},
            instance={"instantiatedVnfInfo": {"flavourId": "simple"}},
            grant_request={
                "operation": "SCALE",
                "addResources": [{"id": "w-0", "type": "COMPUTE", "resourceTemplateId": "workerNode"}],
            },
        )
    assert error.value.remains is not None
    assert len(ids(error.value.remains)) == 5


async def test_a_v1_class_scales_and_a_request_without_it_keeps_what_it_has_left(site: Site) -> None:
    """As Tacker: only parameters that change are sent, so a value that the built-in rules do not know stays."""
    user_data = UserData(path="UserData/cluster_v1.py", class_name="ClusterUserData")
    await site.create(user_data=user_data, api_version="v1")
    request = {"type": "SCALE_OUT", "aspectId": "worker_instance"}
    added = [{"id": "w-0", "type": "COMPUTE", "resourceTemplateId": "workerNode"}]
    asked: dict[str, Any] = {"request": request, "grant_request": {"operation": "SCALE", "addResources": added}}
    instance = {"instantiatedVnfInfo": {"flavourId": "simple"}}
    (volume,) = (await site.scale(3, user_data=user_data, api_version="v1", instance=instance, **asked)).volumes

    def sizes() -> tuple[int, int]:
        lab = site.lab.cloud
        workers = [one for one in lab.nova.servers.values() if one.name != "masterNode"]
        return len(workers), lab.cinder.volumes[volume.resource_id].size_gib

    assert sizes() == (3, 3)
    await site.scale(4, "op-3", instance=instance, **asked)
    assert sizes() == (4, 3)
    change = site.command(
        ChangeTemplate,
        request={"flavourId": "simple", "extVirtualLinks": links()},
        counts={"masterNode": 1, "workerNode": 4},
        grant_request={"operation": "CHANGE_VNFPKG", "dstVnfdId": "vnfd-1"},
        instance=instance,
    )
    await site.do(change, a_context(operation_id="op-4", step_id="change"))
    assert sizes() == (4, 3)


async def test_servers_are_stopped_and_started_once(site: Site) -> None:
    before = await site.create()
    servers = tuple(ids(before))
    for state, status in (("STOPPED", "SHUTOFF"), ("STARTED", "ACTIVE")):
        command = OperateServers(
            vnf_instance_id="inst-1", vim=openstack_vim(site.lab.auth_url), servers=servers, state=state
        )
        for _ in range(2):
            outcome = await site.servers.operate_servers(command, a_context(operation_id=f"op-{state}"))
            assert outcome == Done(ServersOperated(servers=servers, state=state))
        assert {site.lab.cloud.nova.servers[one].status for one in servers} == {status}


async def test_a_graceful_stop_waits_without_a_worker(site: Site) -> None:
    before = await site.create()
    command = OperateServers(
        vnf_instance_id="inst-1", vim=openstack_vim(site.lab.auth_url), servers=tuple(ids(before)), state="STOPPED",
        graceful_wait_s=3600,
    )  # fmt: skip
    assert isinstance(await site.servers.operate_servers(command, a_context()), NotYet)
    assert {site.lab.cloud.nova.servers[one].status for one in ids(before)} == {"ACTIVE"}


async def test_a_missing_server_cannot_be_started(site: Site) -> None:
    command = OperateServers(
        vnf_instance_id="inst-1", vim=openstack_vim(site.lab.auth_url), servers=("nowhere",), state="STARTED"
    )
    with pytest.raises(ServerNotOperable, match="nowhere: state SHUTOFF expected, found no such server"):
        await site.servers.operate_servers(command, a_context())
