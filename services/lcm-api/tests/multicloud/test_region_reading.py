"""Health, features and objects of any kind, which the API reads from the cluster of a region."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from kubevnfm_kit.clock import rfc3339
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.kubernetes.objects import Key
from kubevnfm_lab.lab import Lab
from kubevnfm_vim_registry.settings import Settings
from worlds.region_world import REGIONS, RegionWorld, region_world
from worlds.set_clock import SetClock

OP_EDGE = f"{REGIONS}/op/edge"
RESOURCES = f"{OP_EDGE}/resources"


def an_object(kind: str, name: str, namespace: str = "default", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, **more}


async def test_health_says_whether_the_cluster_answers(
    lab: Lab, settings: Settings, tmp_path: Path, cluster: LabCluster
) -> None:
    """MC-080."""
    clock = SetClock(datetime.fromisoformat("2026-06-01T00:00:00Z"))
    async with region_world(lab, settings, tmp_path, clock=clock) as world:
        made = (await world.region(cluster)).must(201).json
        end = datetime.fromisoformat(made["not_after"])
        clock.at = end - timedelta(days=20, hours=1)
        health = (await world.call("GET", f"{OP_EDGE}/health")).must(200).json
        assert health.pop("latency_ms") > 0
        expected = {
            "reachable": True,
            "server_version": "v1.31.4",
            "not_after": rfc3339(end),
            "days_left": 20,
            "watch": {"state": "none"},
        }
        assert health == expected
        lab.faults.add(part="kubernetes", effect="fail", status=503)
        away = (await world.call("GET", f"{OP_EDGE}/health")).must(200).json
        assert "answered 503" in away.pop("reason")
        assert away == {**expected, "reachable": False}
        assert (await world.call("GET", f"{OP_EDGE}/features")).problem(503)["type"] == "cluster-unavailable"
        refused = await world.call("GET", f"{RESOURCES}?apiVersion=v1&kind=Pod")
        assert refused.problem(503)["type"] == "cluster-unavailable"
        assert "Retry-After" in refused.headers


async def test_features_are_those_of_the_nodes(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-118; capabilities that no API group stands for, of MC-073."""
    avx = "feature.node.kubernetes.io/cpu-cpuid.AVX512F"
    sriov = "feature.node.kubernetes.io/network-sriov.capable"
    for number, labels in enumerate(({avx: "true", sriov: "true", "zone": "a"}, {avx: "true"}, {avx: "false"})):
        await cluster.add_node(f"node-{number}", address=f"10.0.0.{number}", control_plane=number == 0)

        def with_features(node: dict[str, Any], labels: dict[str, str] = labels) -> None:
            node["metadata"]["labels"].update(labels)
            for name in ("capacity", "allocatable"):
                node["status"][name]["intel.com/sriov"] = "4"

        cluster.registry.change("nodes", Key("", f"node-{number}"), with_features)
    made = (await world.region(cluster)).must(201).json
    assert {"nfd", "sriov"} <= set(made["capabilities"])
    features = (await world.call("GET", f"{OP_EDGE}/features")).must(200).json
    assert features["labels"] == {avx: {"false": 1, "true": 2}, sriov: {"true": 1}}
    assert features["extended_resources"] == {"intel.com/sriov": 12}
    first = features["nodes"][0]
    assert (first["name"], first["labels"]) == ("node-0", {avx: "true", sriov: "true"})
    assert first["allocatable"]["intel.com/sriov"] == "4"
    assert {"cpu", "memory"} <= set(first["capacity"])
    assert features["devices"] == []


async def test_objects_of_any_kind_are_read_live(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-053."""
    (await world.region(cluster)).must(201)
    for number in range(3):
        labels = {"app": "a" if number else "b"}
        made = an_object("ConfigMap", f"map-{number}", data={"k": "v"})
        made["metadata"]["labels"] = labels
        cluster.plane.create("configmaps", made)

    async def names(query: str) -> list[str]:
        answer = (await world.call("GET", f"{RESOURCES}?apiVersion=v1&kind=ConfigMap&namespace=default{query}")).must(
            200
        )
        return [one["metadata"]["name"] for one in answer.json if one["metadata"]["name"].startswith("map-")]

    assert await names("") == ["map-0", "map-1", "map-2"]
    assert await names("&name=map-1") == ["map-1"]
    assert await names("&name=no-such") == []
    assert await names("&labels=app%3Da") == ["map-1", "map-2"]
    assert await names("&labels=app%20in%20(a,b),!other") == ["map-0", "map-1", "map-2"]
    one = (await world.call("GET", f"{RESOURCES}?apiVersion=v1&kind=ConfigMap&name=map-0")).must(200).json[0]
    assert (one["apiVersion"], one["kind"], one["data"]) == ("v1", "ConfigMap", {"k": "v"})
    assert "managedFields" not in one["metadata"]
    roles = await world.call("GET", f"{RESOURCES}?apiVersion=rbac.authorization.k8s.io/v1&kind=ClusterRole&limit=1")
    assert len(roles.must(200).json) == 1
    link = re.fullmatch(r'<(.+)>; rel="next"', roles.headers["Link"])
    assert link is not None
    following = (await world.call("GET", link[1].removeprefix(world.url))).must(200)
    assert len(following.json) == 1
    assert following.json != roles.json


async def test_the_next_page_of_the_longest_selector_can_be_asked_for(world: RegionWorld, cluster: LabCluster) -> None:
    """The marker has the selector in it, and servers bound a request's first line."""
    (await world.region(cluster)).must(201)
    for name in ("map-0", "map-1"):
        made = an_object("ConfigMap", name)
        made["metadata"]["labels"] = {"app": "a"}
        cluster.plane.create("configmaps", made)
    selector = f"app in ({','.join(['a'] * 508)})"
    assert 1000 < len(selector) <= 1024
    query = urlencode({"apiVersion": "v1", "kind": "ConfigMap", "labels": selector, "limit": 1})
    first = (await world.call("GET", f"{RESOURCES}?{query}")).must(200)
    link = re.fullmatch(r'<(.+)>; rel="next"', first.headers["Link"])
    assert link is not None
    last = (await world.call("GET", link[1].removeprefix(world.url))).must(200)
    assert [one["metadata"]["name"] for one in (*first.json, *last.json)] == ["map-0", "map-1"]
    longer = urlencode({"apiVersion": "v1", "kind": "ConfigMap", "labels": f"app={'a' * 1024}"})
    (await world.call("GET", f"{RESOURCES}?{longer}")).problem(400)


async def test_the_values_of_a_secret_are_not_shown(world: RegionWorld, cluster: LabCluster) -> None:
    """MC-049, MC-053."""
    (await world.region(cluster)).must(201)
    secret = an_object("Secret", "s", data={"password": "c3dvcmRmaXNo"}, type="Opaque")
    secret["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(secret)}
    cluster.plane.create("secrets", secret)
    answer = (await world.call("GET", f"{RESOURCES}?apiVersion=v1&kind=Secret&namespace=default&name=s")).must(200)
    assert b"c3dvcmRmaXNo" not in answer.raw
    shown = answer.json[0]
    assert shown["data"] == {"password": "***"}
    assert set(shown["metadata"]["annotations"].values()) == {"***"}


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("kind=Pod", "apiVersion"),
        ("apiVersion=v1", "kind"),
        ("apiVersion=v1&kind=../pods", "kind"),
        ("apiVersion=a/b/v1&kind=Pod", "apiVersion"),
        ("apiVersion=../v1&kind=Pod", "apiVersion"),
        ("apiVersion=v1&kind=Pod&namespace=A", "namespace"),
        ("apiVersion=v1&kind=Pod&name=a%2Fb", "name"),
        ("apiVersion=v1&kind=Pod&labels=a%3D%3D%3Db", "labels"),
        ("apiVersion=v1&kind=Pod&colour=blue", "colour"),
    ],
)
async def test_a_query_that_is_not_as_expected_is_400_and_names_the_parameter(
    world: RegionWorld, cluster: LabCluster, query: str, name: str
) -> None:
    """Chapter 8."""
    (await world.region(cluster)).must(201)
    problem = (await world.call("GET", f"{RESOURCES}?{query}")).problem(400)
    assert [error["pointer"] for error in problem["errors"]] == [f"/{name}"]


async def test_a_kind_that_the_region_does_not_serve_is_422(world: RegionWorld, cluster: LabCluster) -> None:
    """Chapter 8."""
    (await world.region(cluster)).must(201)
    for query in ("apiVersion=v1&kind=Pud", "apiVersion=nothing.example/v1&kind=Pod", "apiVersion=v1&kind=Scale"):
        problem = (await world.call("GET", f"{RESOURCES}?{query}")).problem(422)
        assert problem["type"] == "unknown-kind"
    for path in ("health", "features", "resources?apiVersion=v1&kind=Pod", "resources"):
        (await world.call("GET", f"{REGIONS}/op/other/{path}")).problem(404)


async def test_a_region_that_lists_without_an_end_is_refused(
    world: RegionWorld, cluster: LabCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer is bounded, and all answers about one kind together."""
    (await world.region(cluster)).must(201)
    await cluster.add_node("node-0", address="10.0.0.1", control_plane=True)
    monkeypatch.setattr("kubevnfm_vim_registry.adapters.kubernetes_regions._MOST_BYTES", 100)
    problem = (await world.call("GET", f"{OP_EDGE}/features")).problem(422)
    assert "at most 100 bytes" in problem["detail"]
