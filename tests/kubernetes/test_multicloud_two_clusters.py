"""Two real API servers as two cloud regions: scenarios 13 and 14 of chapter 17 of docs/specification/multicloud.md.

The one is the given cluster; the tests start the other one, which they also kill.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final
from uuid import uuid4

import pytest
from callers.user import User
from clouds.lab_process import LabProcess
from patience import until
from real.own_cluster import OwnControlPlane, kubelet, missing_programs
from real.real_cluster import GIVEN, Body, RealCluster
from real.real_regions import RealRegion, registered
from real.region_packages import PLAIN
from servers.installations import Installation, SingleInstallation

pytestmark = [
    pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md"),
    pytest.mark.skipif(bool(missing_programs()), reason=f"not in PATH: {missing_programs()}"),
]

GROUPS: Final = "/group-operations"
DEAD_S: Final = 60.0
ROUNDS_BEFORE: Final = 3


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnControlPlane]:
    """The second control plane, for all tests of this file."""
    plane = OwnControlPlane(tmp_path_factory.mktemp("plane"))
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="module")
def patient(lab_process: LabProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """kubevnfm in one process; it waits for namespaces as long as Kubernetes takes to empty several at once."""
    running = SingleInstallation(tmp_path_factory.mktemp("patient"), lab_process)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@dataclass(frozen=True)
class Two:
    """Two regions, and what kills the second one."""

    given: RealRegion
    own: RealRegion
    plane: OwnControlPlane
    package: str

    async def place_of(self, vnf: Body) -> Body:
        """Return the Deployment of a VNF as its cluster has it."""
        region = self.given if vnf["cloud_region_id"] == self.given.id else self.own
        found = await region.cluster.get(f"/apis/apps/v1/namespaces/{vnf['namespace']}/deployments/web")
        assert found is not None
        return found

    async def begin(self, first: str, second: str, **members: Any) -> Body:
        """Ask for a VNF in each region, with these tags; return the group operation."""
        regions = [
            {"cloud_region_id": each.id, "values": {"tag": tag}}
            for each, tag in ((self.given, first), (self.own, second))
        ]
        asked = {"csar_id": self.package, "regions": regions, **members}
        begun: Body = (await self.given.call("POST", "/vnf_instances", asked)).must(202).json
        return begun

    async def ended(self, group: Body) -> Body:
        """Return a group operation once it has ended."""

        async def found() -> Body | None:
            shown: Body = (await self.given.call("GET", f"{GROUPS}/{group['id']}")).must(200).json
            return shown if shown["status"] != "RUNNING" else None

        return await until(found, timeout_s=120)

    async def vnfs(self, group: Body) -> dict[str, Body]:
        """Return the VNFs of a group operation by region; there must be one for each at most."""
        listed = (await self.given.call("GET", f"/vnf_instances?group_operation={group['id']}")).must(200).json
        found = {each["cloud_region_id"]: each for each in listed}
        assert len(found) == len(listed), listed
        for each in listed:
            (self.given if each["cloud_region_id"] == self.given.id else self.own).namespaces.append(each["namespace"])
        return found

    async def remove(self, vnf: Body) -> None:
        """Bring a VNF down; nothing of it may be left in its cluster."""
        region = self.given if vnf["cloud_region_id"] == self.given.id else self.own
        await region.remove(vnf)
        assert await region.is_empty(vnf["namespace"])


@pytest.fixture
async def two(
    patient: Installation, cluster: RealCluster, plane: OwnControlPlane, tmp_path: Path
) -> AsyncIterator[Two]:
    """Both clusters as regions of their own for each test."""
    await asyncio.to_thread(plane.start_api)
    async with AsyncExitStack() as stack:
        user = await stack.enter_async_context(User(patient))
        other = await stack.enter_async_context(RealCluster(plane.access))
        await stack.enter_async_context(kubelet(other))
        given = await stack.enter_async_context(registered(user, cluster, tmp_path))
        # Before the given one in the order of a group operation, which is that of the names.
        own = await stack.enter_async_context(registered(user, other, tmp_path, name=f"own-{uuid4().hex[:8]}"))
        yield Two(given, own, plane, await given.onboard(PLAIN))


async def test_a_dead_region_changes_nothing_in_the_other(two: Two) -> None:
    """MC-041, MC-050, MC-051, MC-142: one package ten times at once over both, then one hangs and is killed for a minute (scenario 13)."""
    regions = [two.given, two.own] * 5
    vnfs = await asyncio.gather(
        *(
            each.bring_up(two.package, namespace=each.place(), values={"tag": f"1.{n}"})
            for n, each in enumerate(regions)
        )
    )
    for number, vnf in enumerate(vnfs):
        assert image_of(await two.place_of(vnf)) == f"nginx:1.{number}"
    stays = vnfs[1]
    old = {each["name"] for each in await two.own.seen(2, stays)}
    await asyncio.gather(*map(two.remove, [*vnfs[:1], *vnfs[2:]]))

    before = [await a_life(two.given, two.package) for _ in range(ROUNDS_BEFORE)]
    two.plane.hang_api()
    await two.own.change_later(stays, {"values": {"tag": "2.0"}})
    meanwhile = [await a_life(two.given, two.package) for _ in range(ROUNDS_BEFORE)]
    two.plane.kill_api()
    clock = asyncio.get_running_loop().time
    back_at = clock() + DEAD_S
    async with two.plane.elsewhere() as unseen, kubelet(unseen):
        pods = f"/api/v1/namespaces/{stays['namespace']}/pods"
        for name in old:
            await unseen.remove(f"{pods}/{name}")
    while clock() < back_at:
        meanwhile.append(await a_life(two.given, two.package))
    # Calls that wait for the dead region would wait for its time limits: 5 s and more.
    assert median(meanwhile) < max(before) + 4.0, (before, meanwhile)
    shown = (await two.own.inventory(vnf_id=stays["vnf_id"], kind="Pod")) or [{"watch": "none"}]
    assert {each["watch"] for each in shown} != {"current"}

    await asyncio.to_thread(two.plane.start_api)

    async def is_right() -> bool | None:
        found = await two.own.inventory(vnf_id=stays["vnf_id"], kind="Pod")
        names = {each["name"] for each in found if each["watch"] == "current" and each["phase"] == "Running"}
        return (len(names) == 2 and not names & old) or None

    await until(is_right, timeout_s=60)
    await two.own.settled(stays)
    assert image_of(await two.place_of(stays)) == "nginx:2.0"
    await two.own.seen(2, stays)
    await two.remove(stays)


def image_of(deployment: Body) -> str:
    """Return the image of a Deployment's one container."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


async def a_life(region: RealRegion, package: str) -> float:
    """Bring a VNF up, change it, have others scale it, see each in the inventory, bring it down; return the seconds until it was seen."""
    clock = asyncio.get_running_loop().time
    began = clock()
    vnf = await region.bring_up(package, namespace=region.place())
    await region.seen(2, vnf)
    changed = (await region.call("PATCH", f"/vnf_instances/{vnf['vnf_id']}", {"values": {"tag": "1.28"}})).must(200)
    assert changed.json["status"] == "READY"
    web = f"/apis/apps/v1/namespaces/{vnf['namespace']}/deployments/web"
    await region.cluster.change(f"{web}/scale", {"spec": {"replicas": 3}})
    await region.seen(3, vnf)
    lasted = clock() - began
    # Kubernetes takes seconds to empty a namespace, more or less.
    await region.remove(vnf)
    return lasted


async def test_one_call_brings_a_vnf_up_in_two_clusters(two: Two) -> None:
    """MC-140: values for each; the group is cancelled, stops; a dead region fails alone and is retried (scenario 14)."""
    group = await two.ended(await two.begin("1.28", "1.29"))
    assert group["status"] == "COMPLETED", group
    vnfs = await two.vnfs(group)
    for region, tag in ((two.given, "1.28"), (two.own, "1.29")):
        assert image_of(await two.place_of(vnfs[region.id])) == f"nginx:{tag}"
    await asyncio.gather(*map(two.remove, vnfs.values()))

    group = await two.begin("1.28", "1.29", parallel=1)
    (await two.given.call("POST", f"{GROUPS}/{group['id']}/cancel", {})).must(200)
    cancelled = await two.ended(group)
    assert states(cancelled) == ("CANCELLED", {two.own.id: "READY", two.given.id: "NOT_STARTED"}), cancelled
    await asyncio.gather(*map(two.remove, (await two.vnfs(group)).values()))

    two.plane.kill_api()
    try:
        partly = await two.ended(await two.begin("1.28", "1.29"))
        assert states(partly) == ("PARTLY_FAILED", {two.given.id: "READY", two.own.id: "FAILED"}), partly
        stopped = await two.ended(await two.begin("1.28", "1.29", parallel=1, stop_after_failures=1))
        assert states(stopped) == ("STOPPED", {two.own.id: "FAILED", two.given.id: "NOT_STARTED"}), stopped
    finally:
        await asyncio.to_thread(two.plane.start_api)
    for failed in (partly, stopped):
        (await two.given.call("POST", f"{GROUPS}/{failed['id']}/retry", {})).must(202)
        done = await two.ended(failed)
        assert states(done) == ("COMPLETED", {two.given.id: "READY", two.own.id: "READY"}), done
        await asyncio.gather(*map(two.remove, (await two.vnfs(failed)).values()))


def states(group: Body) -> tuple[str, dict[str, str]]:
    """Return the status of a group operation and the state of each region."""
    return group["status"], {each["cloud_region_id"]: each["state"] for each in group["regions"]}


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.2, 0.5, 1.0])
async def test_a_process_that_is_killed_makes_one_vnf_in_each_cluster(
    two: Two, patient: Installation, after_s: float
) -> None:
    """MC-140: the one process is killed while a group operation runs (scenario 14); the lab's test kills it at each write."""
    group = await two.begin("1.28", "1.29")
    await asyncio.sleep(after_s)
    patient.kill("kubevnfm")
    await asyncio.to_thread(patient.start_one, "kubevnfm")
    done = await two.ended(group)
    assert done["status"] == "COMPLETED", done
    vnfs = await two.vnfs(group)
    assert set(vnfs) == {two.given.id, two.own.id}
    for region in (two.given, two.own):
        made = (await region.cluster.get("/apis/apps/v1/deployments?labelSelector=kubevnfm.io/vnf-instance-id") or {})[
            "items"
        ]
        ours = [each for each in made if each["metadata"]["namespace"] == vnfs[region.id]["namespace"]]
        assert len(ours) == 1
    await asyncio.gather(*map(two.remove, vnfs.values()))
