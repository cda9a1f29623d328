"""Each command for a workload cluster with the process killed after each of its writes: the result is that of one delivery."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from kubevnfm_events.capi import UpdatePart
from kubevnfm_infra_k8s.adapters.documents import (
    SHARED,
    StoredDeletions,
    StoredReleases,
    StoredSharedObjects,
    StoredStartTimes,
)
from kubevnfm_infra_k8s.adapters.stored_inventory import RELEASES
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_store.query import AllOf, Query
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.capi_management import Management, files_of, managed
from worlds.lives import Lives

WORKERS = "Files/kubernetes/workers.yaml"
OTHER = "Files/addons/other.yaml"
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "one"}, "rules": []}
PARTS: tuple[UpdatePart, ...] = ("check", "control_plane", "all", "prune")


@pytest.fixture
def lives() -> Lives:
    return Lives()


@pytest.fixture
async def management(site: Any, lab: LabCluster, store: SqliteStore, lives: Lives) -> AsyncIterator[Management]:
    """Cluster API is installed, and its handlers are mortal."""
    mortal = lives.store(store)
    async with managed(site, lab) as management:
        ports = {
            "clusters": lives.clusters(site.handlers.clusters),
            "releases": StoredReleases(mortal),
            "shared": StoredSharedObjects(mortal),
            "start_times": StoredStartTimes(mortal, SystemClock()),
            "deletions": StoredDeletions(mortal, SystemClock()),
        }
        site.handlers = replace(site.handlers, **ports)
        management.handlers = replace(management.handlers, **ports)
        yield management


def counts(reached: Any) -> dict[str, int]:
    return dict(Counter(each.vdu_id for each in reached.machines))


def uids(reached: Any) -> set[str]:
    return {each.uid for each in reached.machines}


def _comparable(spec: dict[str, Any]) -> dict[str, Any]:
    """Return what two clusters have in common: the objects that a topology was made into have names by chance."""
    random = ("infrastructureRef", "controlPlaneRef") if "topology" in spec else ()
    return {**spec, "controlPlaneEndpoint": None, **dict.fromkeys(random)}


Do = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Awaitable[Any]]
"""Delivers a command until it is done."""


async def once(deliver: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return await deliver()


@dataclass
class Story:
    """A story of one workload cluster, and what was there after each of its commands."""

    management: Management
    store: SqliteStore
    do: Do
    sample: str = "capi-workload"
    seen: list[dict[str, Any]] = field(default_factory=list)

    async def see(self, *facts: Any) -> None:
        """Note the objects and documents of the instance, without what differs between any two clusters."""
        lab = self.management.lab.store
        found: dict[str, Any] = {
            f"{each['kind']} {each['metadata']['name']}": _comparable(each.get("spec", {}))
            for resource in lab.resources_with_objects()
            for each in lab.list(resource, "default")
            if (each["metadata"].get("labels") or {}).get("kubevnfm.io/vnf-instance-id") == "i1"
            and each["kind"] != "Machine"  # has the labels of its control plane, and another name each time
        }
        for each in await self.store.find(RELEASES, Query(AllOf([]))):
            if each.id.startswith("i1"):
                found[each.id] = [{**entry, "uid": bool(entry["uid"])} for entry in each.body["objects"]]
        for each in await self.store.find(SHARED, Query(AllOf([]))):
            found[f"holders of {each.body['object']}"] = each.body["holders"]
        self.seen.append({"facts": facts, **found})

    async def build(self, attempt: int) -> Any:
        """Instantiate the cluster; return what was reached."""
        management, vdus, operation = self.management, self.management.vdus_of(self.sample), f"build{attempt}"
        await self.do(lambda: management.apply(self.sample, operation=operation))
        initialized = await self.do(lambda: management.wait("initialized", vdus=vdus, attempt=attempt))
        await self.do(lambda: management.addons(operation=operation))
        reached = await self.settled(attempt)
        await self.see(reached.uid == initialized.uid, counts(reached))
        return reached

    async def settled(self, attempt: int) -> Any:
        vdus = self.management.vdus_of(self.sample)
        return await self.do(lambda: self.management.wait("available", vdus=vdus, attempt=attempt, is_settled=True))

    async def end(self, operation: str) -> None:
        await self.do(lambda: self.management.site.delete(operation=operation))
        await self.see()


async def life_of_a_cluster(story: Story) -> None:
    """Instantiate, scale out and in, heal, change the package and its addons, build again, terminate."""
    management = story.management
    first = await story.build(1)

    await story.do(lambda: management.scale_workers(4))
    four = await story.settled(12)
    await story.see(counts(four), uids(first) <= uids(four))
    leaving = sorted((each for each in four.machines if each.vdu_id == "worker"), key=lambda each: each.name)[:2]
    await story.do(lambda: management.scale_workers(2, *leaving, operation="op3"))
    two = await story.settled(13)
    await story.see(counts(two), uids(two) == uids(four) - {each.uid for each in leaving})

    ill = next(each for each in two.machines if each.vdu_id == "worker")
    deleted = management.deletions()
    checked = await story.do(lambda: management.check(ill))
    healed = await story.do(lambda: management.replace(ill, two.machines))
    await story.see(
        len(checked.chosen), counts(healed), uids(two) - uids(healed) == {ill.uid}, set(deleted) == {ill.name}
    )

    files = files_of("capi-workload")
    files[WORKERS] = files[WORKERS].replace("m1.medium", "m1.large")
    addons = {**files_of("capi-workload", addons=True), OTHER: [ROLE]}
    package = management.site.packages.add(addons, package_id="p-addons")
    for part in PARTS:
        await story.do(lambda part=part: management.update(files, part))  # type: ignore[misc]
        await story.see(part)
        if part == "control_plane":
            await story.settled(21)
            await story.do(lambda: management.addons(OTHER, package=package, operation="op2"))
        if part == "all":
            await story.settled(22)
            await story.do(lambda: management.addons(OTHER, package=package, operation="op2", part="prune"))
    changed = await story.settled(23)
    await story.see(counts(changed), len(uids(healed) & uids(changed)))

    await story.end("again")
    again = await story.build(31)
    await story.see(uids(again) & uids(changed))
    await story.end("end")


async def life_of_a_topology(story: Story) -> None:
    """Instantiate, scale two parts of the topology, terminate."""
    management = story.management
    first = await story.build(1)
    await story.do(lambda: management.scale_topology({"md-0": 3, "controlPlane": 3}))
    more = await story.settled(12)
    await story.see(counts(more), uids(first) <= uids(more))
    leaving = next(each for each in more.machines if each.vdu_id == "worker")
    await story.do(lambda: management.scale_topology({"md-0": 2}, leaving, operation="op3"))
    less = await story.settled(13)
    await story.see(counts(less), uids(less) == uids(more) - {leaving.uid})
    await story.end("end")


@pytest.mark.parametrize(
    ("sample", "life", "least"),
    [("capi-workload", life_of_a_cluster, 90), ("capi-workload-class", life_of_a_topology, 30)],
)
async def test_a_process_that_is_killed_after_each_write_reaches_the_same(
    management: Management,
    store: SqliteStore,
    lives: Lives,
    sample: str,
    life: Callable[[Story], Awaitable[None]],
    least: int,
) -> None:
    """CR-086, CR-094, CR-106, CR-113, CR-117: compared with the same commands without kills, object by object."""
    undisturbed, killed = (Story(management, store, do, sample) for do in (once, lives.until_done))
    await life(undisturbed)
    assert not lives.deaths
    await life(killed)
    assert len(lives.deaths) >= least
    for one, other in zip(killed.seen, undisturbed.seen, strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            assert (name, value) == (name, other[name])
    assert [name for name in killed.seen[-1] if not name.startswith("holders of CustomResourceDefinition")] == ["facts"]
