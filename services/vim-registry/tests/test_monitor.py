"""The monitor: clusters whose control plane is replaced, and access data that expire."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kubevnfm_clients.multicloud.regions import HttpCloudRegions, RegionRequest
from kubevnfm_clients.vim_views import VimCapacity
from kubevnfm_events import VimConnection
from kubevnfm_events.vim import (
    RegisterVim,
    VimBecameReachable,
    VimCredentialsExpiring,
    VimRegistered,
    VimStatusChanged,
    VimWentUnreachable,
)
from kubevnfm_kit.errors import InvalidInput, NotFound
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.lab import Lab
from kubevnfm_secrets import Secret
from kubevnfm_vim_registry.capacities import Capacities
from kubevnfm_vim_registry.domain.capacity import SeenCapacity, cluster_capacity, quotas_of
from kubevnfm_vim_registry.domain.expiry import first_expiry
from kubevnfm_vim_registry.domain.record import VimRecord
from kubevnfm_vim_registry.settings import Settings
from worlds.kubeconfigs import a_kubeconfig, encoded
from worlds.set_clock import SetClock
from worlds.vim_world import RING, TOKEN, World, running

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_register(cluster: LabCluster, **access: Secret | str) -> RegisterVim:
    return RegisterVim(
        vnf_instance_id="vnf-1",
        name="edge",
        connection=VimConnection(
            vim_type="ETSINFV.KUBERNETES.V_1",
            interface_info={"endpoint": cluster.endpoint, "ssl_ca_cert": cluster.ca_pem},
            access_info={"bearer_token": Secret(cluster.admin_token), **access},
        ),
    )


@pytest.fixture
def clock() -> SetClock:
    return SetClock(datetime.now(UTC))


@pytest.fixture
async def world(lab: Lab, settings: Settings, tmp_path: Path, clock: SetClock) -> AsyncIterator[World]:
    async with running(lab, settings, tmp_path, clock=clock) as world:
        yield world


async def registered(world: World, cluster: LabCluster) -> str:
    made = await world.ask(a_register(cluster))
    assert isinstance(made, VimRegistered)
    return made.vim_id


def calls(world: World) -> int:
    return sum(call["count"] for call in world.lab.ledger.calls() if call["part"] == "kubernetes")


async def rounds(world: World, count: int) -> None:
    """Wait until the monitor has called the cluster so many times more."""
    before = calls(world)
    await world.until(lambda: calls(world) >= before + count)


async def metrics(world: World) -> list[str]:
    """Return the lines that Prometheus reads of vim-registry."""
    async with world.session.get(f"{world.url}/metrics") as answer:
        return (await answer.text()).splitlines()


async def test_a_cluster_whose_control_plane_is_replaced_may_be_silent_for_three_minutes(
    world: World, cluster: LabCluster, clock: SetClock
) -> None:
    """CR-101."""
    vim_id = await registered(world, cluster)
    world.operations.by_instance["vnf-1"] = "op-7"
    world.lab.faults.add(part="kubernetes", effect="fail", status=503)
    await rounds(world, 4)
    clock.advance(179)
    await rounds(world, 4)
    assert (await world.vims.get(vim_id))["status"] == "ACTIVE"
    assert len(world.events.data) == 1

    clock.advance(2)
    await world.events.has(2)
    gone = world.events.data[1]
    assert isinstance(gone, VimStatusChanged)
    assert (gone.vim_id, gone.status) == (vim_id, "UNREACHABLE")


async def test_a_silence_without_an_operation_is_published_at_once_and_once(world: World, cluster: LabCluster) -> None:
    """CR-101."""
    vim_id = await registered(world, cluster)
    await rounds(world, 3)
    assert f'kubevnfm_vim_up{{type="kubernetes",vim_id="{vim_id}"}} 1.0' in await metrics(world)
    world.lab.faults.add(part="kubernetes", effect="fail", status=503)
    await world.events.has(2)
    await rounds(world, 4)
    assert f'kubevnfm_vim_up{{type="kubernetes",vim_id="{vim_id}"}} 0.0' in await metrics(world)
    assert [event.type for event in world.events.data] == [VimRegistered.type, VimStatusChanged.type]


async def test_a_silence_that_ended_does_not_count_for_the_next(
    world: World, cluster: LabCluster, clock: SetClock
) -> None:
    """CR-101."""
    vim_id = await registered(world, cluster)
    world.operations.by_instance["vnf-1"] = "op-7"
    for _ in range(2):
        world.lab.faults.add(part="kubernetes", effect="fail", status=503)
        await rounds(world, 3)
        clock.advance(120)
        await rounds(world, 3)
        world.lab.faults.clear()
        await rounds(world, 4)
    assert (await world.vims.get(vim_id))["status"] == "ACTIVE"
    assert len(world.events.data) == 1


def a_token(expires_at: datetime) -> str:
    payload = base64.urlsafe_b64encode(json.dumps({"exp": int(expires_at.timestamp())}).encode()).rstrip(b"=").decode()
    return f"e30.{payload}.c2ln"


def test_the_part_that_expires_first_is_found(cluster: LabCluster) -> None:
    assert first_expiry({"bearer_token": "opaque", "ssl_ca_cert": "no PEM"}) is None
    assert first_expiry({"bearer_token": "e30.e30.x"}) is None
    soon = first_expiry({"bearer_token": a_token(NOW), "ssl_ca_cert": cluster.ca_pem})
    assert soon is not None
    assert (soon.part, soon.at) == ("bearer_token", NOW)
    certificate = first_expiry({"ssl_ca_cert": cluster.ca_pem})
    assert certificate is not None
    assert certificate.part == "ssl_ca_cert"


@pytest.mark.parametrize(
    ("days", "threshold"), [(30.1, None), (30, 30), (14.5, 30), (8, 14), (6.9, 7), (2, 3), (0.5, 1), (0, 0), (-3, 0)]
)
def test_each_threshold_is_reached_when_so_many_days_are_left(days: float, threshold: int | None) -> None:
    expiry = first_expiry({"bearer_token": a_token(NOW + timedelta(days=days))})
    assert expiry is not None
    assert expiry.threshold(NOW) == threshold
    assert expiry.days_left(NOW) == max(int(days), 0)


async def test_access_data_that_expire_are_published_once_for_each_threshold(
    world: World, cluster: LabCluster, clock: SetClock
) -> None:
    vim_id = await registered(world, cluster)
    end = first_expiry({"ssl_ca_cert": cluster.ca_pem})
    assert end is not None
    await rounds(world, 3)
    assert len(world.events.data) == 1
    shown = [
        line.split()[1] for line in await metrics(world) if line.startswith("kubevnfm_vim_credentials_end_seconds{")
    ]
    assert [float(each) for each in shown] == [end.at.timestamp()]
    for number, (days_before, days_left) in enumerate(((29.5, 29), (6.5, 6), (-1, 0)), start=2):
        clock.at = end.at - timedelta(days=days_before)
        await world.events.has(number)
        await rounds(world, 3)
        assert len(world.events.data) == number
        event = world.events.data[-1]
        assert isinstance(event, VimCredentialsExpiring)
        assert (event.vim_id, event.name, event.part, event.days_left) == (vim_id, "edge", "ssl_ca_cert", days_left)

    # Renewed data are reported again: here the same ones, which have expired.
    await world.vims.update(vim_id, {"auth_cred": {"bearer_token": cluster.admin_token}})
    await world.events.has(5)
    assert isinstance(world.events.data[-1], VimCredentialsExpiring)


def a_region(cluster: LabCluster, **user: str) -> RegionRequest:
    kubeconfig = a_kubeconfig(cluster, user=user or None)
    return RegionRequest(cloud_owner="op", cloud_region="edge", kubeconfig=Secret(encoded(kubeconfig)))


def regions(world: World) -> HttpCloudRegions:
    return HttpCloudRegions(world.url, TOKEN, world.session, RING)


async def test_a_region_is_unreachable_after_three_silent_probes(world: World, cluster: LabCluster) -> None:
    """MC-080."""
    region, _ = await regions(world).register(a_region(cluster))
    before = calls(world)
    world.lab.faults.add(part="kubernetes", effect="fail", status=503)
    away = await world.events.first(VimWentUnreachable)
    assert calls(world) >= before + 3
    assert (away.vim_id, away.region) == (region.vim_id, "op/edge")
    assert "answered 503" in away.reason
    await rounds(world, 4)
    world.lab.faults.clear()
    back = await world.events.first(VimBecameReachable)
    assert (back.vim_id, back.region) == (region.vim_id, "op/edge")
    kinds = [event.type for event in world.events.data]
    assert kinds == [
        VimRegistered.type,
        VimStatusChanged.type,
        VimWentUnreachable.type,
        VimStatusChanged.type,
        VimBecameReachable.type,
    ]
    assert (await regions(world).get("op", "edge")).status == "ACTIVE"


async def test_a_region_in_error_is_unreachable_after_three_silent_probes_too(
    world: World, cluster: LabCluster
) -> None:
    """MC-080."""
    await regions(world).register(a_region(cluster))
    world.lab.faults.add(part="kubernetes", effect="fail", status=418)
    await world.until(lambda: len(world.events.data) == 2)
    world.lab.faults.clear()
    world.lab.faults.add(part="kubernetes", effect="fail", status=503, times=2)
    world.lab.faults.add(part="kubernetes", effect="fail", status=418)
    await rounds(world, 6)
    assert (await regions(world).get("op", "edge")).status == "ERROR"
    assert [event.type for event in world.events.data] == [VimRegistered.type, VimStatusChanged.type]


async def test_fewer_silent_probes_are_not_published(world: World, cluster: LabCluster) -> None:
    """MC-080: they count in a row only."""
    await regions(world).register(a_region(cluster))
    for _ in range(3):
        world.lab.faults.add(part="kubernetes", effect="fail", status=503, times=2)
        await rounds(world, 4)
    assert [event.type for event in world.events.data] == [VimRegistered.type]


async def test_a_regions_access_data_that_expire_are_published_once_a_day(
    world: World, cluster: LabCluster, clock: SetClock
) -> None:
    """MC-081."""
    region, _ = await regions(world).register(a_region(cluster))
    end = first_expiry({"ssl_ca_cert": cluster.ca_pem})
    assert end is not None
    clock.at = end.at - timedelta(days=20)
    await rounds(world, 3)
    assert len(world.events.data) == 1
    for number, days_before in enumerate((13.5, 12.5, 1.5), start=2):
        clock.at = end.at - timedelta(days=days_before)
        await world.events.has(number)
        await rounds(world, 3)
        assert len(world.events.data) == number
        event = world.events.data[-1]
        assert isinstance(event, VimCredentialsExpiring)
        assert (event.vim_id, event.name, event.days_left) == (region.vim_id, "op/edge", int(days_before))


class CountedCapacity:
    """Answers at once, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def capacity(self, vim: VimRecord, *, as_of: str) -> SeenCapacity:
        self.asked.append(vim.id)
        return SeenCapacity(VimCapacity(as_of=as_of, nodes=1))


async def test_the_capacities_of_many_vims_are_read_once_a_minute_each(clock: SetClock) -> None:
    """A list that is asked for again and again, as by an open page, calls no VIM for what was read a moment ago."""
    probe, now = CountedCapacity(), "2026-01-01T00:00:00Z"
    capacities = Capacities({"kubernetes": probe, "openstack": probe}, clock, at_a_time=64)
    facts = {"tenant_id": "t", "type": "kubernetes", "auth_url": "https://a", "created_at": now, "updated_at": now}
    vims = [VimRecord.model_validate({"id": f"v{number}", "name": f"v{number}", **facts}) for number in range(600)]
    for _ in range(5):
        known = [capacities.known(each) for each in vims]
        await asyncio.gather(*(capacities.read(each, longest_s=5) for each in vims))
    assert all(each.seen is not None for each in known)
    assert sorted(probe.asked) == sorted(each.id for each in vims)


async def test_a_view_shows_the_checks_of_a_vim_and_how_much_is_left_there(
    world: World, cluster: LabCluster, clock: SetClock
) -> None:
    """The capacity is read when a caller asks, at most once a minute; what was seen stays when the VIM is away."""
    await cluster.add_node("worker-1", address="10.0.0.5", control_plane=False)
    vim_id = await registered(world, cluster)
    world.lab.cloud.quotas.change({"cores": 20})
    cloud = await world.vims.create(world.openstack())
    view = await world.vims.view(vim_id)
    assert view.capacity is not None
    assert (view.capacity.nodes, view.capacity.nodes_ready, view.nodes_not_ready) == (1, 1, ())
    assert (view.capacity.cpu or 0) > 0
    assert (view.capacity.memory_bytes or 0) > 2**20
    assert [(each.name, each.ready, each.addresses) for each in view.cluster_nodes or ()] == [
        ("worker-1", True, ("10.0.0.5",))
    ]
    assert (view.type, view.status, view.owner) == ("kubernetes", "ACTIVE", "vnf-1")
    assert (view.expiring, view.days_left is not None) == ("ssl_ca_cert", True)
    quotas = {each.name: (each.used, each.limit) for each in (await _with_capacity(world, cloud["id"])).quotas}
    assert quotas == {
        "instances": (0, None), "cores": (0, 20), "ram_mib": (0, None), "volumes": (0, None), "volume_gib": (0, None),
    }  # fmt: skip
    world.lab.cloud.quotas.change({"cores": 30})
    again = await _with_capacity(world, cloud["id"])
    assert {each.name: each.limit for each in again.quotas}["cores"] == 20, "it was read less than a minute ago"

    page, after = await world.vims.views({}, limit=1)
    assert ([each.name for each in page], after) == (["cloud"], ("cloud", cloud["id"]))
    page, after = await world.vims.views({}, limit=1, after=after)
    assert ([each.name for each in page], after) == (["edge"], None)
    for filters, wanted in (
        ({"type": "openstack"}, ["cloud"]),
        ({"status": "ERROR"}, []),
        ({"name": "ed"}, ["edge"]),
        ({"name": "g"}, []),
        ({"id": vim_id[:8]}, ["edge"]),
        ({"id": vim_id}, ["edge"]),
        ({"id": "no"}, []),
    ):
        page, _ = await world.vims.views(filters, limit=10)
        assert [each.name for each in page] == wanted, filters
    with pytest.raises(InvalidInput, match="unknown filter"):
        await world.vims.views({"tenant": "a"}, limit=10)

    before = clock.now()
    fault = world.lab.faults.add(part="kubernetes", effect="fail", status=503)
    # A changed VIM is read again at once.
    clock.advance(1)
    await world.vims.update(vim_id, {"description": "at the edge"})
    failed = await world.vims.view(vim_id)
    assert (failed.status_since, failed.capacity) == (view.status_since, view.capacity)
    assert "503" in failed.capacity_error
    clock.advance(5)
    await world.events.first(VimStatusChanged)
    away = await world.vims.view(vim_id)
    assert (away.status, away.capacity, away.cluster_nodes) == ("UNREACHABLE", view.capacity, view.cluster_nodes)
    assert away.status_since > before.isoformat()
    assert "503" in away.error
    assert away.error_at is not None
    known = len(world.events.data)
    world.lab.faults.remove(fault.fault_id)
    assert (await world.events.first(VimStatusChanged, after=known)).status == "ACTIVE"
    back = await world.vims.view(vim_id)
    assert back.error == away.error, "the last failure, although it answers again"
    with pytest.raises(NotFound):
        await world.vims.view("none")


async def _with_capacity(world: World, vim_id: str) -> VimCapacity:
    found = (await world.vims.view(vim_id)).capacity
    assert found is not None
    return found


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"limits": []},
        {"limits": {"absolute": {"maxTotalCores": "20", "totalCoresUsed": 1}}},
        {"limits": {"absolute": {"maxTotalCores": 2**70, "totalCoresUsed": 1, "maxTotalInstances": True}}},
    ],
)
def test_limits_that_are_no_numbers_are_left_out(answer: object) -> None:
    assert quotas_of("compute", answer) == []


def test_nodes_of_a_hostile_cluster_are_read_within_limits() -> None:
    ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI\u202e" + "x" * 10_000}
    addresses = [{"type": "InternalIP", "address": f"10.0.0.{number}"} for number in range(100)]
    listed: list[dict[str, object]] = [
        {}, {"metadata": [], "status": 5}, {"status": {"allocatable": {"cpu": "1e9999999", "memory": "x", "pods": -1}}},
        {"metadata": {"name": "n" * 10_000}, "status": {
            "allocatable": {"cpu": "3920m", "memory": "16Gi", "pods": "110"}, "conditions": [ready, 7], "addresses": addresses,
        }},
    ]  # fmt: skip
    seen = cluster_capacity(listed, as_of="now")
    assert (seen.capacity.nodes, seen.capacity.nodes_ready) == (4, 0)
    assert len(seen.not_ready) == 4
    many = [{"metadata": {"name": f"n-{number:03}"}} for number in range(300, 0, -1)]
    assert [each.name for each in cluster_capacity(many, as_of="now").not_ready] == [f"n-{n:03}" for n in range(1, 101)]
    assert (seen.capacity.cpu, seen.capacity.memory_bytes, seen.capacity.pods) == (3.92, 16 * 2**30, 110)
    last = seen.nodes[-1]
    assert (len(last.name), len(last.addresses)) == (253, 8)
    assert last.reason.startswith("KubeletNotReady: no CNI")
    assert len(last.reason) < 600
    assert "\u202e" not in last.reason
