"""Creation and deletion with the twin: the handlers read the present state, then create what is missing."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_csar.documents import parse_heat_yaml
from kubevnfm_csar.vnfd.model import Flavour, Vdu
from kubevnfm_events.stacks import ResourcesCreated, ResourcesDeleted, StackOrder, UserData
from kubevnfm_infra_openstack.adapters.package_flavours import CachedFlavours
from kubevnfm_infra_openstack.adapters.user_data_process import UserDataProcess
from kubevnfm_infra_openstack.domain.asked_networks import check_networks
from kubevnfm_infra_openstack.domain.asked_ports import NetworkView, SubnetView
from kubevnfm_infra_openstack.domain.errors import (
    QuotaExceeded,
    StackFailed,
    StackNameTaken,
    StackNotAsAsked,
    StackNotDeleted,
    StackRefused,
    StackTimedOut,
    VimUnavailable,
)
from kubevnfm_infra_openstack.domain.grace import GracePeriods
from kubevnfm_infra_openstack.domain.hot import NETWORK, SERVER
from kubevnfm_infra_openstack.domain.ordering import StackOrders
from kubevnfm_infra_openstack.domain.scaling import with_sizes
from kubevnfm_infra_openstack.domain.stack import HeatResource, Stack, StackDefinition, StackState, attempt_tag
from kubevnfm_infra_openstack.handlers import InfraOpenstackHandlers
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing, hide
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import Done, NotYet
from worlds.given_vims import GivenVims
from worlds.stack_world import PACKAGE, FolderPackages, TwinClouds, TwinNetworks, a_context, a_create, a_delete

RING = KeyRing.from_text(KeyRing.new_key())


class World:
    """The handlers over twins."""

    def __init__(self, store: SqliteStore) -> None:
        self.clouds, self.packages, self.now = TwinClouds(), FolderPackages(), datetime(2026, 1, 1, tzinfo=UTC)
        flavours = CachedFlavours(self.packages)
        self.handlers = InfraOpenstackHandlers(
            clouds=self.clouds,
            vims=GivenVims(),
            packages=flavours,
            orders=StackOrders(flavours, UserDataProcess(Limits(timeout_s=20, trust_packages=True)), RING),
            grace=GracePeriods(store, _Clock(self)),
            wait_s=0.1,
        )
        self.stacks = self.clouds.stacks
        self.shows()

    def shows(self, workers: int = 2) -> None:
        """Let each stack hold a master and so many workers."""
        names = ["masterNode", *(f"workerNode-{n}" for n in range(workers))]
        ids = ["srv-1", *(f"worker-{n}" for n in range(workers))]
        self.stacks.resource_list = tuple(
            HeatResource(name, SERVER, one, "CREATE_COMPLETE", "", "") for name, one in zip(names, ids, strict=True)
        )


class _Clock:
    """A clock that the test sets."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> datetime:
        return self._world.now


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with SqliteStore.open(tmp_path / "store.db") as store:
        yield World(store)


async def test_a_stack_is_created_and_its_servers_are_reported(world: World) -> None:
    outcome = await world.handlers.create_resources(a_create(), a_context())
    assert isinstance(outcome, Done)
    assert isinstance(outcome.event, ResourcesCreated)
    servers = [(server.vdu_id, server.server_id) for server in outcome.event.resources.servers]
    assert servers == [("masterNode", "srv-1"), ("workerNode", "worker-0"), ("workerNode", "worker-1")]
    (order,) = world.stacks.orders
    assert order.tags == ("inst-1", attempt_tag("op-1", "create_vnf_resources", 1))
    assert order.parameters["nfv"]["VDU"]["workerNode"] == {
        "desired_capacity": 2,
        "flavor": "m1.small",
        "image": "ubuntu",
    }
    assert order.parameters["nfv"]["CP"]["masterNode_CP1"] == {"network": "net0"}
    assert set(order.files) == {"worker.yaml", "../../../Scripts/boot.sh"}
    assert order.files["../../../Scripts/boot.sh"] == "#!/bin/sh\necho booted\n"


async def test_a_base_hot_may_have_other_numbers_than_a_level_that_is_not_asked_for(world: World) -> None:
    """User data may take the number of machines from additionalParams."""
    world.shows(workers=3)
    assert isinstance(await world.handlers.create_resources(a_create(), a_context()), Done)
    small = {**a_create().request, "instantiationLevelId": "small"}
    command = a_create(tag="inst-2", stack_name="vnf-2", request=small)
    with pytest.raises(StackNotAsAsked, match="VDU workerNode: asked for 2 machines, shown 3"):
        await world.handlers.create_resources(command, a_context())


async def test_a_repeated_create_creates_no_second_stack(world: World) -> None:
    first = await world.handlers.create_resources(a_create(), a_context())
    again = await world.handlers.create_resources(a_create(), a_context())
    assert first == again
    assert len(world.stacks.orders) == 1


async def test_a_stack_that_a_killed_process_requested_is_adopted_when_it_appears_late(world: World) -> None:
    done = await world.handlers.create_resources(a_create(), a_context())
    made, world.stacks.hidden_for = dict(world.stacks.stacks), 1
    assert isinstance(await world.handlers.create_resources(a_create(), a_context()), NotYet)
    assert await world.handlers.create_resources(a_create(), a_context()) == done
    assert world.stacks.stacks == made


async def test_a_slow_stack_occupies_no_worker_and_is_found_again(world: World) -> None:
    world.stacks.is_slow = True
    waiting = await world.handlers.create_resources(a_create(), a_context())
    assert isinstance(waiting, NotYet)
    assert waiting.waits_for == ""
    world.stacks.fails_again = "VDU1: No valid host was found."
    waiting = await world.handlers.create_resources(a_create(), a_context())
    assert isinstance(waiting, NotYet)
    assert waiting.waits_for == "Heat tries again what has failed: VDU1: No valid host was found."
    world.stacks.fails_again, world.stacks.silent_s = "", 200.0
    silent = await world.handlers.create_resources(a_create(), a_context())
    said = "stack vnf-inst-1: Heat has reported nothing about it since 2026-01-01T00:00:00.000Z; in work: VDU1"
    assert silent == NotYet(waiting.again_in_s, waits_for=said)
    world.stacks.hides_failures = True
    assert await world.handlers.create_resources(a_create(), a_context()) == NotYet(waiting.again_in_s)
    (stack_id,) = world.stacks.stacks
    made = world.stacks.stacks[stack_id]
    # Others delete it meanwhile.
    for state in (StackState.GOING, StackState.GONE):
        world.stacks.found, world.stacks.stacks[stack_id] = made, replace(made, state=state)
        assert isinstance(await world.handlers.create_resources(a_create(), a_context()), NotYet)
    world.stacks.found, world.stacks.stacks[stack_id] = None, made
    world.stacks.is_slow = False
    assert isinstance(await world.handlers.create_resources(a_create(), a_context()), Done)
    assert len(world.stacks.orders) == 1


async def test_a_stack_of_the_same_name_with_another_owner_is_not_touched(world: World) -> None:
    world.stacks.stacks["other"] = Stack("other", "vnf-inst-1", StackState.READY, tags=("inst-2",))
    with pytest.raises(StackNameTaken, match="vnf-inst-1"):
        await world.handlers.create_resources(a_create(), a_context())
    with pytest.raises(StackNameTaken):
        await world.handlers.delete_resources(a_delete(), a_context())
    assert list(world.stacks.stacks) == ["other"]


async def test_a_failed_stack_reports_the_reason_of_the_failed_resource(world: World) -> None:
    world.stacks.breaks = "Resource CREATE failed: resources.masterNode"
    world.stacks.resource_list = (
        HeatResource("masterNode", SERVER, "", "CREATE_FAILED", "No valid host was found", ""),
    )
    with pytest.raises(StackFailed, match=r"masterNode.*No valid host was found"):
        await world.handlers.create_resources(a_create(), a_context())


async def test_a_stack_whose_work_an_operator_cancelled_has_failed(world: World) -> None:
    world.stacks.breaks = "Stack CREATE cancelled"
    with pytest.raises(StackFailed, match="Stack CREATE cancelled"):
        await world.handlers.create_resources(a_create(), a_context())


async def test_a_failed_stack_reports_its_remaining_resources(world: World) -> None:
    world.stacks.breaks = "no host"
    world.stacks.resource_list = (
        HeatResource("masterNode", SERVER, "srv-1", "CREATE_COMPLETE", "", ""),
        HeatResource("workerNode", SERVER, "srv-2", "CREATE_FAILED", "No valid host was found", ""),
        HeatResource("net", NETWORK, "net-1", "CREATE_COMPLETE", "", ""),
        HeatResource("old", NETWORK, "net-2", "DELETE_COMPLETE", "", ""),
    )
    world.stacks.lost_servers = {"srv-2"}
    with pytest.raises(StackFailed) as caught:
        await world.handlers.create_resources(a_create(), a_context())
    remains = caught.value.remains
    assert remains is not None
    assert [server.server_id for server in remains.servers] == ["srv-1"]
    assert [network.resource_id for network in remains.networks] == ["net-1"]


async def test_a_repeat_of_the_failed_attempt_creates_nothing(world: World) -> None:
    world.stacks.breaks = "no host"
    for _ in range(2):
        with pytest.raises(StackFailed):
            await world.handlers.create_resources(a_create(), a_context())
    assert len(world.stacks.orders) == 1


async def test_the_next_attempt_replaces_the_failed_stack(world: World) -> None:
    world.stacks.breaks = "no host"
    with pytest.raises(StackFailed):
        await world.handlers.create_resources(a_create(), a_context())
    (broken,) = world.stacks.stacks
    assert isinstance(await world.handlers.create_resources(a_create(), a_context(attempt=2)), Done)
    assert world.stacks.deletions == [broken]
    assert len(world.stacks.stacks) == 1


async def test_heats_deadline_is_reported_as_a_timeout(world: World) -> None:
    world.stacks.breaks = "Create timed out"
    world.stacks.resource_list = ()
    with pytest.raises(StackTimedOut, match="vnf-inst-1"):
        await world.handlers.create_resources(a_create(), a_context())


async def test_a_rejected_template_reports_heats_reason(world: World) -> None:
    world.stacks.refuses = "The Flavor ID (m9) could not be found."
    with pytest.raises(StackRefused, match="m9"):
        await world.handlers.create_resources(a_create(), a_context())


async def test_a_template_that_reads_a_zone_gets_one_without_an_nfvo(world: World, tmp_path: Path) -> None:
    """That of the setting, else that of the cloud, which is asked only then; a refusal without one names the setting."""
    await world.handlers.create_resources(a_create(), a_context())
    assert world.clouds.capacity.asked_zones == 0, "its template reads none"
    folder = Path(shutil.copytree(PACKAGE, tmp_path / "zones"))
    top = folder / "BaseHOT/simple/cluster.yaml"
    read = "      availability_zone: {get_param: [nfv, VDU, masterNode, zone]}\n"
    image = "      image: {get_param: [nfv, VDU, masterNode, image]}\n"
    top.write_text(top.read_text().replace(image, image + read))
    world.packages.root = folder

    async def zone(default: str | None = None, **command: Any) -> object:
        world.stacks.stacks.clear()
        orders = replace(world.handlers.orders, packages=CachedFlavours(world.packages), default_zone=default)
        handlers = replace(world.handlers, orders=orders)
        await handlers.create_resources(a_create(**command), a_context())
        nfv: Any = world.stacks.orders[-1].parameters["nfv"]
        return nfv["VDU"]["masterNode"]["zone"]

    assert await zone() == "nova"
    assert world.clouds.capacity.asked_zones == 1
    assert await zone("az-of-the-setting") == "az-of-the-setting"
    granted = {"zones": [{"id": "z", "zoneId": "az-9"}], "addResources": [{"resourceDefinitionId": "d", "zoneId": "z"}]}
    asked = {"addResources": [{"id": "d", "type": "COMPUTE", "resourceTemplateId": "masterNode"}]}
    assert await zone("az-of-the-setting", grant=granted, grant_request=asked) == "az-9"
    world.clouds.capacity.available = ("az1", "az2")
    assert await zone() is None
    world.stacks.refuses = "Property error: masterNode: Property zone not assigned"
    with pytest.raises(StackRefused, match=r"zone not assigned; no zone is granted: .* set default_zone"):
        await zone()


async def test_an_exceeded_quota_fails_before_anything_is_created(world: World) -> None:
    world.clouds.capacity.free_by_name = {"cores": 2, "servers": 10}
    with pytest.raises(QuotaExceeded, match="quota of cores exceeded: 3 wanted, 2 free"):
        await world.handlers.create_resources(a_create(), a_context())
    assert not world.stacks.orders


async def test_an_unreachable_vim_is_a_retryable_error(world: World) -> None:
    world.stacks.is_down = True
    with pytest.raises(VimUnavailable) as caught:
        await world.handlers.create_resources(a_create(), a_context())
    assert caught.value.retryable


async def test_the_packages_user_data_decides_the_parameters(world: World) -> None:
    command = a_create(
        user_data=UserData(path="./UserData/cluster_v1.py", class_name="ClusterUserData"),
        request={**a_create().request, "additionalParams": {"volume_size": 7}},
    )
    await world.handlers.create_resources(command, a_context())
    (order,) = world.stacks.orders
    assert order.parameters["volume_size"] == 7
    assert order.parameters["nfv"]["VDU"]["workerNode"]["desired_capacity"] == 2


@pytest.mark.parametrize("user_data", [None, UserData(path="UserData/cluster_v1.py", class_name="ClusterUserData")])
async def test_a_size_that_the_template_sets_itself_is_that_of_the_level(
    world: World, tmp_path: Path, user_data: UserData | None
) -> None:
    """sequences.md 6.3: the groups of Tacker's v1 guides have numbers, and the user data do not know the level."""
    world.packages.root = Path(shutil.copytree(PACKAGE, tmp_path / "package"))
    template = world.packages.root / "BaseHOT/simple/cluster.yaml"
    sized = template.read_text().replace("{get_param: [nfv, VDU, workerNode, desired_capacity]}", "2")
    template.write_text(sized)
    if user_data is not None:
        file = world.packages.root / user_data.path
        file.write_text(file.read_text().replace('final["nfv"]["VDU"]["workerNode"]["desired_capacity"] = ', ""))
    request = a_create().request
    for number, asked in enumerate(({}, {"instantiationLevelId": "small"}, {"instantiationLevelId": "large"})):
        command = a_create(
            tag=f"inst-{number}", stack_name=f"vnf-{number}", user_data=user_data, request={**request, **asked}
        )
        world.shows(4 if asked.get("instantiationLevelId") == "large" else 2)
        await world.handlers.create_resources(command, a_context())
    as_it_is, small, large = (order.template for order in world.stacks.orders)
    assert as_it_is == small == sized
    assert isinstance(large, dict)
    assert large["resources"]["worker_instance"]["properties"]["desired_capacity"] == 4


@pytest.mark.parametrize(
    ("kind", "given", "size"),
    [
        ("AutoScalingGroup", {"min_size": 1, "max_size": 3}, "desired_capacity"),
        ("ResourceGroup", {"resource_def": {"type": "VDU1.yaml"}}, "count"),
    ],
)
def test_a_group_without_a_size_gets_that_of_the_level_if_it_is_not_heats_own(
    kind: str, given: dict[str, Any], size: str
) -> None:
    """sequences.md 6.3."""
    flavour = Flavour(flavour_id="simple", file="df.yaml", vdus={"VDU1": Vdu(vdu_id="VDU1")})
    template = {"resources": {"VDU1": {"type": f"OS::Heat::{kind}", "properties": given}}}
    assert with_sizes(template, {}, flavour, {"VDU1": 1}) is None
    larger = with_sizes(template, {}, flavour, {"VDU1": 3})
    assert larger is not None
    assert larger["resources"]["VDU1"]["properties"] == {**given, size: 3}


async def test_delete_removes_the_stack_in_any_state(world: World) -> None:
    for state in StackState:
        if state is not StackState.GONE:
            world.stacks.stacks["s"] = Stack("s", "vnf-inst-1", state, tags=("inst-1",))
            outcome = await world.handlers.delete_resources(a_delete(), a_context())
            assert outcome == Done(ResourcesDeleted(stack_name="vnf-inst-1")), state
            assert not world.stacks.stacks


async def test_a_stack_is_not_deleted_for_one_that_cannot_be_made(world: World) -> None:
    await world.handlers.create_resources(a_create(), a_context())
    command = a_delete(successor=StackOrder(**{name: getattr(a_create(), name) for name in StackOrder.model_fields}))
    world.stacks.refuses = "Error validating value 'ubuntu': No images matching"
    with pytest.raises(StackRefused, match="No images matching") as caught:
        await world.handlers.delete_resources(command, a_context())
    assert caught.value.made_nothing
    world.stacks.refuses = ""
    world.clouds.capacity.free_by_name = {"cores": 2, "servers": 10}
    with pytest.raises(QuotaExceeded, match="quota of cores exceeded: 3 wanted, 2 free"):
        await world.handlers.delete_resources(command, a_context())
    assert not world.stacks.deletions
    assert command.successor is not None
    lost = command.successor.model_copy(update={"request": {"flavourId": "simple", **asks("nowhere")}})
    world.clouds.networks = networks()
    with pytest.raises(Unprocessable, match="no network nowhere"):
        await world.handlers.delete_resources(command.model_copy(update={"successor": lost}), a_context())
    assert not world.stacks.deletions
    (order,) = world.stacks.orders
    assert isinstance(order.template, str)
    (stack_id,) = world.stacks.stacks
    template = parse_heat_yaml(order.template, name="top")
    # The present stack's share becomes free.
    world.stacks.definitions[stack_id] = StackDefinition(template, order.parameters, order.files)
    assert isinstance(await world.handlers.delete_resources(command, a_context()), Done)
    assert world.stacks.deletions == [stack_id]


async def test_delete_without_a_stack_succeeds(world: World) -> None:
    outcome = await world.handlers.delete_resources(a_delete(), a_context())
    assert outcome == Done(ResourcesDeleted(stack_name="vnf-inst-1"))


async def test_a_stuck_deletion_is_retryable(world: World) -> None:
    await world.handlers.create_resources(a_create(), a_context())
    world.stacks.sticks = 1
    with pytest.raises(StackNotDeleted, match="volume is in use") as caught:
        await world.handlers.delete_resources(a_delete(), a_context())
    assert caught.value.retryable
    assert isinstance(await world.handlers.delete_resources(a_delete(), a_context()), Done)
    assert len(world.stacks.deletions) == 2


async def test_a_stack_that_is_deleted_and_still_listed_is_not_gone_yet(world: World) -> None:
    """An engine of Heat that ends between the two leaves it so: the deletion is asked for again."""
    await world.handlers.create_resources(a_create(), a_context())
    world.stacks.is_still_listed = True
    for number in (1, 2):
        outcome = await world.handlers.delete_resources(a_delete(), a_context())
        assert isinstance(outcome, NotYet)
        assert outcome.waits_for.endswith("still lists it (DELETE_COMPLETE)")
        assert len(world.stacks.deletions) == number
    world.stacks.is_still_listed = False
    assert isinstance(await world.handlers.delete_resources(a_delete(), a_context()), Done)


async def test_a_graceful_termination_waits_once_without_a_worker(world: World) -> None:
    await world.handlers.create_resources(a_create(), a_context())
    command = a_delete(graceful_wait_s=30)
    waits_for = "the graceful timeout of the request ends at 2026-01-01T00:00:30.000Z"
    assert await world.handlers.delete_resources(command, a_context()) == NotYet(30.0, waits_for)
    world.now += timedelta(seconds=20)
    assert await world.handlers.delete_resources(command, a_context()) == NotYet(10.0, waits_for)
    assert world.stacks.stacks
    world.now += timedelta(seconds=10)
    assert isinstance(await world.handlers.delete_resources(command, a_context()), Done)
    assert not world.stacks.stacks


async def test_simultaneous_creates_create_one_stack_each(world: World) -> None:
    commands = [a_create(stack_name=f"vnf-{n}", tag=f"t-{n}") for n in range(20)]
    outcomes = await asyncio.gather(*(world.handlers.create_resources(c, a_context()) for c in commands))
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    assert sorted(order.name for order in world.stacks.orders) == sorted(c.stack_name for c in commands)


async def test_a_v1_request_gives_the_parameters_of_a_v2_request(world: World) -> None:
    await world.handlers.create_resources(a_create(), a_context())
    lists = {
        "flavourId": "simple",
        "extVirtualLinks": [
            {
                "id": "vl-1",
                "resourceId": "net0",
                "extCps": [
                    {"cpdId": name, "cpConfig": [{"cpInstanceId": "1"}]}
                    for name in ("masterNode_CP1", "workerNode_CP1")
                ],
            }
        ],
        "vimConnectionInfo": [{"id": "v", "vimType": "openstack", "accessInfo": {"password": "x"}}],
    }
    v1 = a_create(api_version="v1", request=hide(lists), tag="t-2", stack_name="vnf-2")
    await world.handlers.create_resources(v1, a_context())
    first, second = world.stacks.orders
    assert first.parameters == second.parameters


NET = NetworkView("net-id", (SubnetView("s4", "10.1.0.0/24", name="four"), SubnetView("s6", "fd01::/64")))
ONLY_4 = NetworkView("only-id", (SubnetView("o4", "10.2.0.0/24"),))
HIDDEN = NetworkView("hidden-id")
ADDRESSES = "cpConfig/a/cpProtocolData[0]/ipOverEthernet/ipAddresses"


def asks(network: str = "net", *addresses: dict[str, Any], **config: Any) -> dict[str, Any]:
    """Return links with an entry for the master's port."""
    data = [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": list(addresses)}}]
    cp = {"cpdId": "masterNode_CP1", "cpConfig": {"a": config or {"cpProtocolData": data}}}
    ports = [{"id": "given", "resourceHandle": {"resourceId": "port-1"}}]
    return {"extVirtualLinks": [{"id": "l", "resourceId": network, "extLinkPorts": ports, "extCps": [cp]}]}


def networks(**changes: Any) -> TwinNetworks:
    known = {"net": NET, "only": ONLY_4, "hidden": HIDDEN}
    return TwinNetworks(known, {"port-1": "net-id"}, {"nowhere"}, **changes)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    (asks("nowhere"), "extVirtualLinks[0]/resourceId", "the VIM shows no network nowhere"),
    (
        asks("net", {"type": "IPV4", "fixedAddresses": ["10.1.0.9", "10.9.0.1"]}),
        f"extVirtualLinks[0]/extCps[0]/{ADDRESSES}/fixedAddresses",
        "10.9.0.1 is not in 10.1.0.0/24 or fd01::/64",
    ),
    (
        asks("net", {"type": "IPV4", "fixedAddresses": ["10.1.0.9"], "subnetId": "s6"}),
        f"extVirtualLinks[0]/extCps[0]/{ADDRESSES}/fixedAddresses",
        "10.1.0.9 is not in fd01::/64",
    ),
    (
        asks("net", {"type": "IPV4", "subnetId": "o4"}),
        f"extVirtualLinks[0]/extCps[0]/{ADDRESSES}/subnetId",
        "has no subnet o4; it has four (10.1.0.0/24), s6 (fd01::/64)",
    ),
    (
        asks("net", {"type": "IPV4", "addressRange": {"minAddress": "10.9.0.1", "maxAddress": "10.9.0.9"}}),
        f"extVirtualLinks[0]/extCps[0]/{ADDRESSES}/addressRange",
        "10.9.0.1 to 10.9.0.9 has no address of 10.1.0.0/24",
    ),
    (asks("only", {"type": "IPV6"}), f"extVirtualLinks[0]/extCps[0]/{ADDRESSES}", "network only has no IPv6 subnet"),
    (
        asks("only", linkPortId="given"),
        "extVirtualLinks[0]/extCps[0]/cpConfig/a/linkPortId",
        "port port-1 is on network net-id; one on only expected",
    ),
    (
        {"extManagedVirtualLinks": [{"id": "m", "vnfVirtualLinkDescId": "v", "resourceId": "nowhere"}]},
        "extManagedVirtualLinks[0]/resourceId",
        "no network nowhere",
    ),
]
RIGHT: list[dict[str, Any]] = [
    asks("net", {"type": "IPV4", "fixedAddresses": ["10.1.0.9"], "subnetId": "four"}, {"type": "IPV6"}),
    asks("net", {"type": "IPV4", "addressRange": {"minAddress": "10.0.255.1", "maxAddress": "10.1.0.9"}}),
    asks("net", linkPortId="given"),
    # The tenant does not see the subnets of this network.
    asks("hidden", {"type": "IPV4", "fixedAddresses": ["10.9.0.1"]}),
]


@pytest.mark.parametrize(("links", "place", "reason"), WRONG)
async def test_what_the_vims_networks_lack_is_named_before_anything_is_made(
    world: World, links: dict[str, Any], place: str, reason: str
) -> None:
    world.clouds.networks = networks()
    with pytest.raises(Unprocessable) as error:
        await world.handlers.create_resources(a_create(request={"flavourId": "simple", **links}), a_context())
    assert error.value.field == place
    assert reason in error.value.reason
    assert error.value.made_nothing
    assert not world.stacks.orders
    # A link of the grant takes the place of the request's.
    with pytest.raises(Unprocessable) as error:
        await check_networks(networks(), asks("elsewhere"), links)
    assert error.value.field == f"grant/{place}"


@pytest.mark.parametrize("links", RIGHT)
async def test_what_the_vims_networks_have_is_not_refused(links: dict[str, Any]) -> None:
    await check_networks(networks(), links, {})
    await check_networks(networks(), asks("nowhere"), links)


async def test_a_port_that_the_vim_lacks_is_named_and_a_silent_vim_decides_later() -> None:
    lacking = TwinNetworks({"net": NET})
    with pytest.raises(Unprocessable, match="the VIM shows no port port-1"):
        await check_networks(lacking, asks("net", linkPortId="given"), {})
    await check_networks(networks(is_silent=True), asks("nowhere"), {}, limit_s=0.02)
