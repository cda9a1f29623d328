"""VNFs of the multi-cloud API while they live on a real API server: scenarios of chapter 17 of docs/specification/multicloud.md."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from callers.user import User
from patience import until
from real.real_cluster import GIVEN, Body, RealCluster
from real.real_regions import LABEL, RealRegion, registered
from real.region_packages import PLAIN
from servers.subscriber import Subscriber

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

REPAIR: Final = {"additionalParams": {"repair": True}}
OUT: Final = {"type": "SCALE_OUT", "aspectId": "web_aspect"}


@pytest.fixture
async def region(user: User, cluster: RealCluster, tmp_path: Path) -> AsyncIterator[RealRegion]:
    """The given cluster as a region of its own for each test."""
    async with registered(user, cluster, tmp_path) as given:
        yield given


async def test_what_others_and_sol003_do_is_in_the_inventory(region: RealRegion) -> None:
    """MC-001, MC-042, MC-051, MC-056, MC-107, MC-108, MC-114, MC-117 (scenario 9)."""
    vnf = await region.bring_up(await region.onboard(PLAIN), namespace=region.place())
    vnf_id, user = vnf["vnf_id"], region.user
    web = f"/apis/apps/v1/namespaces/{vnf['namespace']}/deployments/web"
    await region.seen(2, vnf)
    await region.cluster.change(f"{web}/scale", {"spec": {"replicas": 4}})
    killed = (await region.seen(4, vnf))[0]
    await region.cluster.remove(f"/api/v1/namespaces/{vnf['namespace']}/pods/{killed['name']}")
    assert killed["uid"] not in {each["uid"] for each in await region.seen(4, vnf, without=killed["name"])}
    (addressed,) = await region.inventory(
        ip=(await region.seen(4, vnf))[0]["networks"][0]["addresses"][0], vnf_id=vnf_id
    )
    assert addressed["node"].startswith("node-")

    await user.do(vnf_id, "heal", REPAIR)
    await region.seen(2, vnf)
    changed = (await region.call("PATCH", f"/vnf_instances/{vnf_id}", {"values": {"tag": "1.28"}})).must(200).json
    assert changed["status"] == "READY", changed
    await user.do(vnf_id, "scale", OUT)
    three = {each["name"] for each in await region.seen(3, vnf)}
    vnfcs = (await user.instance(vnf_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert {each["id"] for each in vnfcs} == three
    await user.do(vnf_id, "heal", {"vnfcInstanceId": [vnfcs[0]["id"]]})
    healed = {each["name"] for each in await region.seen(3, vnf, without=vnfcs[0]["id"])}
    assert three - healed == {vnfcs[0]["id"]}
    (made,) = await region.read("apps/v1", "Deployment", namespace=vnf["namespace"], name="web")
    assert (made["spec"]["replicas"], made["spec"]["template"]["spec"]["containers"][0]["image"]) == (3, "nginx:1.28")
    await region.remove(vnf)
    assert await region.is_empty(vnf["namespace"])


async def test_a_drained_node_is_seen_by_inventory_and_subscriber(region: RealRegion) -> None:
    """CR-120a, MC-050, MC-051, MC-052, MC-107 (scenario 9): each pod of the node within 2 s of the API server."""
    async with Subscriber.listening() as subscriber:
        vnf = await region.bring_up(await region.onboard(PLAIN), namespace=region.place())
        wanted = {"types": ["infra.placement.changed"], "vnf_ids": [vnf["vnf_id"]]}
        subscription = {"callback_url": subscriber.uri, "filter": wanted}
        made = (await region.call("POST", "/subscriptions", subscription)).must(201).json
        before = await region.seen(2, vnf)
        drained = before[0]["node"]
        away = [each for each in before if each["node"] == drained]
        node, pods = f"/api/v1/nodes/{drained}", f"/api/v1/namespaces/{vnf['namespace']}/pods"
        # As `kubectl drain --pod-selector` does: the pods of other tests on that node stay.
        await region.cluster.change(node, {"spec": {"unschedulable": True}})
        try:
            for each in away:
                eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": each["name"]}}
                await region.cluster.make(f"{pods}/{each['name']}/eviction", eviction)
            after = await region.seen(2, vnf, without=away[0]["name"])
        finally:
            await region.cluster.change(node, {"spec": {"unschedulable": None}})
        assert drained not in {each["node"] for each in after}
        new = {(each["name"], each["node"]) for each in after} - {(each["name"], each["node"]) for each in before}
        assert len(new) == len(away)

        async def is_shown() -> bool | None:
            vnfcs = (await region.user.instance(vnf["vnf_id"]))["instantiatedVnfInfo"]["vnfcResourceInfo"]
            shown = {(one["id"], one["metadata"].get("node")) for one in vnfcs}
            return shown == {(each["name"], each["node"]) for each in after} or None

        await until(is_shown, timeout_s=2)

        async def notified() -> bool | None:
            data = [each.body["data"] for each in subscriber.received]
            placed = {(each["name"], (each.get("new") or {}).get("node")) for each in data}
            gone = {(each["name"], (each.get("old") or {}).get("node")) for each in data if not each.get("new")}
            return (new <= placed and {(each["name"], drained) for each in away} <= gone) or None

        await until(notified, timeout_s=2)
        (await region.call("DELETE", f"/subscriptions/{made['id']}")).must(204)
        await region.remove(vnf)


async def test_a_number_of_an_autoscaler_survives_each_operation(region: RealRegion) -> None:
    """MC-114 (scenario 9): that of the real controller, and one that is written into the Scale beside it."""
    vnf = await region.bring_up(await region.onboard(PLAIN), namespace=region.place())
    one, user, place = f"/vnf_instances/{vnf['vnf_id']}", region.user, vnf["namespace"]
    web = f"/apis/apps/v1/namespaces/{place}/deployments/web"
    spec: Body = {"minReplicas": 3, "maxReplicas": 9}
    spec |= {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    scalers = f"/apis/autoscaling/v2/namespaces/{place}/horizontalpodautoscalers"
    await region.cluster.make(scalers, {"metadata": {"name": "web"}, "spec": spec})
    await region.seen(3, vnf)
    await region.cluster.change(f"{web}/scale", {"spec": {"replicas": 5}})
    await region.seen(5, vnf)

    async def number() -> tuple[int, str]:
        found = await region.cluster.get(web)
        assert found is not None
        return found["spec"]["replicas"], found["spec"]["template"]["spec"]["containers"][0]["image"]

    assert (await region.call("PATCH", one, {"values": {"tag": "1.28"}})).must(200).json["status"] == "READY"
    assert await number() == (5, "nginx:1.28")
    assert (await region.call("POST", f"{one}/rollback", {"revision": 1})).must(200).json["status"] == "READY"
    assert await number() == (5, "nginx:1.27")
    operation = await user.start(vnf["vnf_id"], "scale", OUT)
    assert (await user.rest(operation))["state"] == "FAILED_TEMP"
    assert "HorizontalPodAutoscaler" in (await user.occurrence(operation))["error"]["detail"]
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    assert (await number())[0] == 5
    healed = (await region.seen(5, vnf))[0]["name"]
    await user.do(vnf["vnf_id"], "heal", {"vnfcInstanceId": [healed]})
    await region.seen(5, vnf, without=healed)
    container = {"name": "web", "image": "nginx:others"}
    await region.cluster.merge_lists(web, {"spec": {"template": {"spec": {"containers": [container]}}}})
    await user.do(vnf["vnf_id"], "heal", REPAIR)
    assert await number() == (5, "nginx:1.27")
    await region.seen(5, vnf)
    await region.cluster.remove(f"{scalers}/web")
    await region.remove(vnf)
    assert await region.is_empty(place)


async def test_nothing_happens_to_what_is_suspended(region: RealRegion) -> None:
    """MC-031, MC-139 (scenario 16)."""
    package, user = await region.onboard(PLAIN), region.user
    held, free = await asyncio.gather(*(region.bring_up(package, namespace=region.place()) for _ in range(2)))
    one, reason = f"/vnf_instances/{held['vnf_id']}", {"reason": "new switches"}
    (await region.call("PUT", f"{one}/suspension", reason)).must(200)
    for method, body in (("PATCH", {"values": {"tag": "1.29"}}), ("DELETE", None)):
        refused = (await region.call(method, one, body)).must(409)
        assert (refused.json["type"], "new switches" in refused.detail) == ("suspended", True)
    for vnf in (held, free):
        await region.cluster.remove(f"/api/v1/namespaces/{vnf['namespace']}/services/web")
    await degraded(region, free)
    assert (await region.settled(held))["suspended"]["reason"] == "new switches"
    (await region.call("DELETE", f"{one}/suspension")).must(204)
    assert "Service" in (await degraded(region, held))["status_detail"]

    (await region.call("PUT", f"/cloud-regions/{region.id}/suspension", reason)).must(200)
    for vnf in (held, free):
        assert (await user.ask(vnf["vnf_id"], "heal", REPAIR)).must(409).json["type"] == "suspended"
    asked = {"cloud_region_id": region.id, "csar_id": package, "namespace": region.place()}
    assert (await region.call("POST", "/vnf_instances", asked)).must(409).json["type"] == "suspended"
    (await region.call("DELETE", f"/cloud-regions/{region.id}/suspension")).must(204)
    await user.do(held["vnf_id"], "heal", REPAIR)
    assert await region.read("v1", "Service", namespace=held["namespace"], name="web")

    theirs = f"/api/v1/namespaces/{held['namespace']}/configmaps"
    await region.cluster.make(theirs, {"metadata": {"name": "theirs"}})
    left = (await region.call("DELETE", one)).must(200).json["left"]
    assert [(each["kind"], each["name"], each["reason"]) for each in left] == [
        ("Namespace", held["namespace"], f"it has ConfigMap {held['namespace']}/theirs")
    ]
    assert await region.cluster.get(f"{theirs}/theirs") is not None
    await region.remove(free)
    assert await region.is_empty(free["namespace"])


async def degraded(region: RealRegion, vnf: Body) -> Body:
    """Return the VNF once a comparison has found what is missing."""

    async def found() -> Body | None:
        shown: Body = (await region.call("GET", f"/vnf_instances/{vnf['vnf_id']}")).must(200).json
        return shown if shown["status"] == "DEGRADED" else None

    return await until(found, timeout_s=60)


async def test_one_package_ten_times_at_once(region: RealRegion) -> None:
    """MC-007, MC-041 (scenarios 2, 13)."""
    package = await region.onboard(PLAIN)
    places = {region.place(): f"1.{number}" for number in range(10)}
    vnfs = await asyncio.gather(
        *(region.bring_up(package, namespace=place, values={"tag": tag}) for place, tag in places.items())
    )
    for place, tag in places.items():
        (web,) = await region.read("apps/v1", "Deployment", namespace=place, name="web")
        assert web["spec"]["template"]["spec"]["containers"][0]["image"] == f"nginx:{tag}"
    await asyncio.gather(*map(region.remove, vnfs[:5]))
    left = (await region.call("GET", f"/vnf_instances?cloud_region_id={region.id}&status=READY")).must(200).json
    assert {each["vnf_id"] for each in left} == {each["vnf_id"] for each in vnfs[5:]}
    for vnf in vnfs[5:]:
        await region.seen(2, vnf)
    await asyncio.gather(*map(region.remove, vnfs[5:]))
    for place in places:
        assert await region.is_empty(place)


async def test_the_last_vnf_of_a_namespace_removes_it(region: RealRegion) -> None:
    """MC-031: the one that made it goes first, or all go at once; one that comes then has it made again."""
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'm-${part}'}\n"
    order = "artifacts: [{file: m.yaml, wait: exists}]\n"
    package, place = await region.onboard({"artifact-order.yaml": order, "m.yaml": settings}), region.place()

    async def bring_up(part: str) -> Body:
        return await region.bring_up(package, namespace=place, values={"part": part})

    path = f"/api/v1/namespaces/{place}"
    first = await bring_up("a")
    second = await bring_up("b")
    uid = (await region.cluster.get(path) or {})["metadata"]["uid"]
    await region.remove(first)
    shown = (await region.cluster.get(path) or {})["metadata"]
    assert (shown["uid"], shown["labels"][LABEL]) == (uid, second["vnf_id"])
    more = await asyncio.gather(*(bring_up(f"c{number}") for number in range(5)))
    leaving = asyncio.gather(*map(region.remove, [second, *more]))
    again = await bring_up("z")
    await leaving
    assert await region.cluster.get(f"{path}/configmaps/m-z") is not None
    await region.remove(again)
    assert await region.is_empty(place)


async def test_a_volume_outlives_what_asks_for_it(region: RealRegion) -> None:
    """MC-100, MC-102, MC-104, MC-105: a foreign claim never gets the volume (scenario 6)."""
    source = {"nfs": {"server": "192.0.2.9", "path": "/data"}}
    wanted = {"cloud_region_id": region.id, "name": f"data-{uuid4().hex[:6]}", "size": "1Gi", "source": source}
    wanted["access_modes"] = ["ReadWriteOnce"]
    made = (await region.call("POST", "/persistent-volumes", wanted)).must(201).json
    assert (await region.call("POST", "/persistent-volumes", wanted)).must(200).json["id"] == made["id"]
    one, path = f"/persistent-volumes/{made['id']}", f"/api/v1/persistentvolumes/{made['pv']}"
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    async with region.cluster.namespace() as place:
        claims = f"/api/v1/namespaces/{place}/persistentvolumeclaims"
        foreign = {"metadata": {"name": "theirs"}, "spec": {**claim, "volumeName": made["pv"]}}
        await region.cluster.make(claims, foreign)

        async def refused() -> bool | None:
            events = await region.cluster.get(f"/api/v1/namespaces/{place}/events")
            return any(each["reason"] == "FailedBinding" for each in (events or {})["items"]) or None

        await until(refused, timeout_s=60)
        (await region.call("PATCH", one, {"size": "2Gi"})).must(422)
        (await region.call("PATCH", one, {"labels": {"site": "north"}})).must(200)
        volume = await region.cluster.get(path)
        assert volume is not None
        assert volume["metadata"]["labels"]["site"] == "north"
        assert volume["spec"]["claimRef"]["namespace"] == "default"
        gone = (await region.call("DELETE", one)).must(200).json
        assert (gone["data"], gone["where"]) == ("kept", "nfs 192.0.2.9:/data")
        assert await region.cluster.get(path) is None
        assert (await region.cluster.get(f"{claims}/theirs") or {})["status"]["phase"] != "Bound"
