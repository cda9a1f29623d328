"""Watched objects of many Clusters: each has its own, and hears of them alone (capi.md CR-058)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.ports import Seen
from kubevnfm_infra_k8s.domain.workload_clusters.cluster_watches import WatchedObjects


def machine(name: str, cluster: str | None = None, *, labelled: bool = False, kind: str = "Machine") -> dict[str, Any]:
    labels = {"cluster.x-k8s.io/cluster-name": cluster} if labelled else {}
    spec = {"clusterName": cluster} if cluster and not labelled else {}
    return {"kind": kind, "metadata": {"namespace": "n", "name": name, "labels": labels}, "spec": spec}


class Users:
    """Those who wait for Clusters a and b, and for any."""

    def __init__(self, objects: WatchedObjects) -> None:
        self.objects = objects
        self.events = {"a": asyncio.Event(), "b": asyncio.Event(), "any": asyncio.Event()}
        for name, event in self.events.items():
            objects.users[("", "") if name == "any" else ("n", name)].add(event)

    def woken_by(self, seen: Seen[Any]) -> set[str]:
        self.objects.update(seen)
        woken = {name for name, event in self.events.items() if event.is_set()}
        for event in self.events.values():
            event.clear()
        return woken


@pytest.fixture
def users() -> Users:
    return Users(WatchedObjects())


@pytest.mark.parametrize(
    ("body", "woken"),
    [
        (machine("m", "a"), {"a", "any"}),
        (machine("m", "b", labelled=True), {"b", "any"}),
        (machine("a", kind="Cluster"), {"a", "any"}),
        (machine("m", "another"), {"any"}),
        (machine("m"), {"a", "b", "any"}),
    ],
    ids=["of-a", "labelled-b", "cluster", "of-another", "without-an-owner-yet"],
)
def test_a_change_wakes_those_that_it_concerns(users: Users, body: dict[str, Any], woken: set[str]) -> None:
    """Otherwise each change costs a look at each of the Clusters that are waited for."""
    assert users.woken_by(Seen({"n/m": body})) == woken
    assert users.woken_by(Seen({}, gone=("n/m",))) == woken
    assert not users.objects.bodies
    assert not users.objects.of_clusters


def test_an_object_that_changes_hands_leaves_the_one_and_joins_the_other(users: Users) -> None:
    users.objects.update(Seen({"n/m": machine("m", "a"), "n/m2": machine("m2", "a")}, is_all=True))
    assert users.woken_by(Seen({"n/m": machine("m", "b")})) == {"a", "b", "any"}
    assert {place: set(found) for place, found in users.objects.of_clusters.items()} == {
        ("n", "a"): {"n/m2"},
        ("n", "b"): {"n/m"},
    }


def test_a_watch_that_begins_again_forgets_what_is_gone(users: Users) -> None:
    users.objects.update(Seen({"n/m": machine("m", "a"), "n/m2": machine("m2", "b")}, is_all=True))
    users.objects.update(Seen({"n/m2": machine("m2", "b")}, is_all=True))
    assert set(users.objects.bodies) == {"n/m2"}
    assert set(users.objects.of_clusters) == {("n", "b")}
