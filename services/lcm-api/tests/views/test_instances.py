"""``/kubevnfm/v1/instances``: lists of VNF instances, and the tree of one, as people and the page ask for them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients.http import ServiceUnavailable
from kubevnfm_clients.multicloud.inventory import InventoryResource
from kubevnfm_clients.multicloud.links import VirtualLink
from kubevnfm_clients.multicloud.object_health import Health
from kubevnfm_clients.multicloud.volumes import PersistentVolume
from kubevnfm_events import Envelope, Event
from kubevnfm_events.inventory import TroubleChanged
from kubevnfm_events.lcm import InstanceTroubled
from kubevnfm_events.stacks import ResourcesCreated
from kubevnfm_lcm_api.lifecycle.core import dependencies
from kubevnfm_lcm_api.views.instance_rows import DriftMark
from kubevnfm_lcm_api.views.tree.model import Node, TreeNode
from kubevnfm_lcm_api.views.tree.ordering import arrange
from patience import until_true
from worlds.cnf_world import deployed
from worlds.lcm_builders import NETWORK, RESOURCES
from worlds.lcm_world import World, lcm_world

INSTANCES = "/kubevnfm/v1/instances"
DRIFT = {"state": "CHANGED", "since": "2026-11-26T10:00:00Z", "reason": "web: changed by kubectl"}
ORPHANED = {"since": "2026-11-26T10:00:00Z", "reason": "the cluster that it stood on does not exist"}


async def listed(world: World, query: str = "") -> list[dict[str, Any]]:
    """Return all instances of a list, page by page."""
    rows, href = list[dict[str, Any]](), f"{INSTANCES}?{query}"
    while href:
        page = (await world.call("GET", href)).must(200).json
        rows += page["items"]
        href = page.get("next", "").removeprefix(world.url)
    return rows


async def test_lists_have_filters_and_pages(world: World) -> None:
    """Newest first; by name with a name; each problem is found, whatever says it, and once."""
    assert await listed(world) == []
    package = await world.sample()
    names = ("edge-1", "edge-2", "core-1", "edgy", "machine")
    ids = [await world.create(vnfInstanceName=name) for name in names]
    await world.reached(await world.instantiate(ids[0]), "COMPLETED")
    world.twins.failing.add("infra.openstack.create_resources")
    failed = await world.instantiate(ids[1])
    await world.reached(failed, "FAILED_TEMP")
    assert [each["name"] for each in await listed(world, "problem=true")] == ["edge-2"]
    await world.store.update("vnf_instances", ids[0], {"metadata/kubevnfm_drift": DRIFT})
    await world.store.update("vnf_instances", ids[1], {"metadata/kubevnfm_drift": DRIFT})
    await world.store.update("vnf_instances", ids[2], {"internal/remainsOf": "an-operation"})
    await world.store.update("vnf_instances", ids[3], {dependencies.PATH: ORPHANED})
    names_by_query = {
        "": ["machine", "edgy", "core-1", "edge-2", "edge-1"],
        "limit=2": ["machine", "edgy", "core-1", "edge-2", "edge-1"],
        "name=edge": ["edge-1", "edge-2"],
        "name=edge&limit=1": ["edge-1", "edge-2"],
        "name=": ["core-1", "edge-1", "edge-2", "edgy", "machine"],
        "state=INSTANTIATED": ["edge-1"],
        "state=NOT_INSTANTIATED&limit=3": ["machine", "edgy", "core-1", "edge-2"],
        f"vnfdId={package['vnfdId']}&name=core": ["core-1"],
        f"vnfdId={package['vnfdId']}&limit=2": ["machine", "edgy", "core-1", "edge-2", "edge-1"],
        "vnfdId=none": [],
        f"id={ids[0]}": ["edge-1"],
        f"id={ids[1]},{ids[4]}&id={ids[0]}&name=edge-1&vimId=vim-1": ["edge-1"],
        f"id=none&id={ids[0]}&state=NOT_INSTANTIATED": [],
        f"id={ids[4]},{ids[0]}&problem=true": ["edge-1"],
        f"id={ids[4]}&problem=true": [],
    }
    for query, wanted in names_by_query.items():
        assert [each.get("name") for each in await listed(world, query)] == wanted, query
    by_id = {
        "problem=true": {"edge-1", "edge-2", "core-1", "edgy"},
        "problem=true&limit=1": {"edge-1", "edge-2", "core-1", "edgy"},
        "problem=true&name=edge-2": {"edge-2"},
        "problem=true&state=INSTANTIATED": {"edge-1"},
        "vimId=vim-1": {"edge-1", "edge-2"},
        "vimId=vim-1&limit=1": {"edge-1", "edge-2"},
        "vimId=vim-1&problem=true": {"edge-1", "edge-2"},
        "vimId=none": set(),
    }
    for query, found in by_id.items():
        rows = await listed(world, query)
        assert sorted(each["name"] for each in rows) == sorted(found), query
        assert [each["id"] for each in rows] == sorted(each["id"] for each in rows), query

    by = {each["id"]: each for each in await listed(world)}
    drifted, broken, fresh = by[ids[0]], by[ids[1]], by[ids[4]]
    assert (drifted["kind"], drifted["health"], drifted["vimIds"]) == ("machines", "problem", ["vim-1"])
    assert drifted["drift"] == DRIFT
    assert (drifted["text"], drifted["since"]) == (DRIFT["reason"], DRIFT["since"])
    assert (broken["operation"]["id"], broken["operation"]["state"]) == (failed, "FAILED_TEMP")
    assert broken["text"].startswith("INSTANTIATE has failed: create_resources: no host")
    assert (by[ids[3]]["health"], by[ids[3]]["text"]) == ("problem", ORPHANED["reason"])
    assert (by[ids[2]]["health"], fresh["health"]) == ("problem", "ok")
    assert not {"kind", "operation", "drift", "text"} & set(fresh)


async def test_what_lists_and_trees_do_not_take_is_refused(world: World) -> None:
    for query in (
        "state=RUNNING",
        "problem=false",
        "limit=0",
        "limit=1001",
        "nextpage_opaque_marker=x",
        "size=1",
        f"id={','.join(map(str, range(101)))}",
    ):
        (await world.call("GET", f"{INSTANCES}?{query}")).problem(400)
    missing = f"{INSTANCES}/00000000-0000-4000-8000-000000000000/tree"
    (await world.call("GET", missing)).problem(404)
    (await world.call("GET", f"{missing}?group=perhaps")).problem(400)


async def test_a_page_costs_the_same_in_a_large_collection(tmp_path: Path) -> None:
    """However many instances and operations there are, a page is one query of instances and one of operations."""
    async with lcm_world(tmp_path) as world:
        await world.sample()
        for number in range(3):
            await world.reached(await world.instantiate(await world.create(vnfInstanceName=f"n{number}")), "COMPLETED")
        asked = list[str]()
        find = world.store.find

        async def counted(collection: str, query: Any) -> Any:
            found = await find(collection, query)
            asked.append(f"{collection}:{len(found)}")
            return found

        world.store.find = counted  # type: ignore[method-assign]
        (await world.call("GET", f"{INSTANCES}?limit=1")).must(200)
        assert [each for each in asked if each.startswith("vnf_")] == ["vnf_instances:2"]


async def tree(world: World, instance_id: str, query: str = "") -> dict[str, Any]:
    """Return the root of the tree of an instance."""
    shown = (await world.call("GET", f"{INSTANCES}/{instance_id}/tree{query}")).must(200).json
    assert shown["sequence"]
    root: dict[str, Any] = shown["root"]
    return root


def below(node: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the nodes of a kind."""
    return [*([node] if node["kind"] == kind else []), *(one for each in node["children"] for one in below(each, kind))]


async def test_a_tree_shows_the_machines_of_a_cluster_the_vim_that_it_became_and_the_vnfs_on_it(world: World) -> None:
    await world.sample("cluster")
    world.twins.answers["infra.openstack.create_resources"] = ResourcesCreated(resources=RESOURCES)
    cluster = await world.create("cluster", vnfInstanceName="edge")
    await world.reached(await world.instantiate(cluster, "cluster"), "COMPLETED")
    root = await tree(world, cluster)
    assert (root["name"], root["type"], root["state"], root["health"]) == ("edge", "cluster", "INSTANTIATED", "problem")
    (stack,) = below(root, "stack")
    servers = {each["id"]: each for each in below(stack, "server")}
    assert {each["role"] for each in servers.values()} == {"master", "worker"}
    assert servers["server-w1"]["addresses"] == ["10.10.0.5"]
    (vim,) = below(root, "vim")
    assert (vim["health"], vim["text"]) == ("problem", f"VIM {vim['id']} does not exist")

    world.vims.add(vim["id"], "kubernetes", status="UNREACHABLE", status_reason="no answer within 10 s")
    (vim,) = below(await tree(world, cluster), "vim")
    assert (vim["state"], vim["health"], vim["text"]) == ("UNREACHABLE", "problem", "no answer within 10 s")
    world.vims.records[vim["id"]]["status"] = "ACTIVE"
    cnf = await deployed(world)
    await world.store.update("vnf_instances", cnf, {"internal/vimIds": [vim["id"]], "metadata/kubevnfm_drift": DRIFT})
    root = await tree(world, cluster)
    (on_it,) = below(below(root, "vim")[0], "vnf")
    assert (on_it["id"], on_it["health"], on_it["text"]) == (cnf, "problem", DRIFT["reason"])
    assert root["health"] == "ok", "a cluster is well, although a VNF on it is not"

    found = {
        "state": "INCOMPLETE",
        "since": "2026-11-26T10:00:00Z",
        "reason": "a machine is gone",
        "vnfc_ids": ["vnfc-w2"],
    }
    await world.store.update("vnf_instances", cluster, {"metadata/kubevnfm_drift": found})
    root = await tree(world, cluster)
    first = below(root, "stack")[0]["children"][0]
    assert (first["id"], first["health"], first["since"]) == ("server-w2", "problem", found["since"])
    assert root["drift"]["vnfcIds"] == ["vnfc-w2"]


def a_pod(instance_id: str, name: str, **more: Any) -> InventoryResource:
    """Return a pod as the inventory shows it."""
    facts: dict[str, Any] = {
        "id": name, "vim_id": "k8s", "vnf_id": instance_id, "api_version": "v1", "kind": "Pod", "namespace": "default",
        "name": name, "uid": f"uid-{name}", "node": "worker-1", "phase": "Running", "vdu_id": "VDU1",
        "created_at": "2026-11-26T10:00:00Z", "changed_at": "2026-11-26T10:00:00Z", "watch": "current",
    }  # fmt: skip
    return InventoryResource(**{**facts, **more})


async def test_a_tree_shows_objects_with_their_pods_as_the_inventory_has_them(world: World) -> None:
    """If the inventory cannot be asked, its objects are shown as they are stored, with the reason; that is no error."""
    cnf = await deployed(world)
    (release,) = below(await tree(world, cnf), "release")
    pods = {each["name"]: each for each in below(release, "pod")}
    assert {(each["health"], each["text"]) for each in pods.values()} == {
        ("unknown", "the inventory has no pods of this VNF")
    }

    world.inventory.resources = [
        *(a_pod(cnf, f"web-7d9f-{number:02}") for number in range(12)),
        a_pod(cnf, "web-7d9f-new", phase="Pending", node="", vdu_id=None),
        a_pod(cnf, "web-7d9f-bad", ready=False, trouble="container web: the image a:1 cannot be pulled (ErrImagePull)"),
        a_pod("another", "web-of-another"),
    ]
    root = await tree(world, cnf)
    (release,) = below(root, "release")
    web, pages = release["children"]
    assert (web["type"], web["name"], web["health"]) == ("Deployment", "web", "problem")
    assert (pages["type"], pages["health"]) == ("ConfigMap", "ok")
    bad, pending, others = web["children"]
    assert (bad["name"], bad["state"], bad["health"]) == ("web-7d9f-bad", "Running", "problem")
    assert bad["text"] == "container web: the image a:1 cannot be pulled (ErrImagePull)"
    assert (pending["name"], pending["state"], pending["health"]) == ("web-7d9f-new", "Pending", "problem")
    assert pending["text"] == "the phase is Pending, and it has no node yet"
    assert (others["name"], others["count"], others["health"]) == ("12 Pods of VDU1", 12, "ok")
    assert root["health"] == "problem"
    assert len(below(await tree(world, cnf, "?group=false"), "pod")) == 14

    just_now = datetime.now(UTC).isoformat()
    world.inventory.resources = [
        a_pod(cnf, "web-1", ready=False, changed_at=just_now),
        a_pod(cnf, "web-2", ready=False),
    ]
    states = [(each["name"], each["health"], each["text"]) for each in below(await tree(world, cnf), "pod")]
    assert states == [("web-2", "problem", "it is not ready"), ("web-1", "progressing", "it is not ready")]

    world.inventory.resources = [a_pod(cnf, "web-1", watch="stale since 2026-11-26T11:00:00Z", watch_detail="no route")]
    (pod,) = below(await tree(world, cnf), "pod")
    text = "the cluster cannot be watched: stale since 2026-11-26T11:00:00Z. no route"
    assert (pod["health"], pod["text"]) == ("unknown", text)

    world.inventory.failure = ServiceUnavailable("infra-k8s does not answer (TimeoutError)")
    world.vims.records["k8s"].update(status="UNREACHABLE", status_reason="no route")
    root = await tree(world, cnf)
    assert {(each["health"], each["text"]) for each in [*below(root, "object"), *below(root, "pod")]} == {
        ("unknown", "VIM k8s: no route")
    }
    gone = {"kind": "Deployment", "namespace": "default", "name": "web", "what": "missing"}
    drift = {**DRIFT, "state": "INCOMPLETE", "missing": 1, "objects": [gone]}
    await world.store.update("vnf_instances", cnf, {"metadata/kubevnfm_drift": drift})
    first = below(await tree(world, cnf), "release")[0]["children"][0]
    assert (first["name"], first["state"], first["health"]) == ("web", "missing", "problem")
    await _shows_links_and_volumes(world, cnf)


def trouble(pod: InventoryResource) -> Envelope[Event]:
    """Return the report about a pod."""
    changed = TroubleChanged(
        vnf_instance_id=pod.vnf_id, vim_id=pod.vim_id, kind=pod.kind, namespace=pod.namespace, name=pod.name,
        text=pod.trouble,
    )  # fmt: skip
    return Envelope(changed, source="/kubevnfm/infra-k8s", subject=pod.vnf_id)


async def problems(world: World, number: int) -> list[dict[str, Any]]:
    """Return the instances with a problem once there are so many."""
    found = list[dict[str, Any]]()

    async def are_listed() -> bool:
        found[:] = await listed(world, "problem=true")
        return len(found) == number

    await until_true(are_listed)
    return found


async def test_lists_name_the_trouble_of_a_pod_as_the_tree_does_until_it_ends(world: World) -> None:
    """One that flaps is written once in a few seconds, and no write changes the instance or its entity tag."""
    news = list[InstanceTroubled]()

    async def keep(delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, InstanceTroubled)
        news.append(delivery.envelope.data)
        return Ack()

    async def are_published() -> bool:
        return len(news) == 3

    await world.bus.consume_events("tests.troubled", ["lcm.instance.troubled"], keep)
    cnf, url = await deployed(world), "/vnflcm/v2/vnf_instances"
    other = await world.create("cnf")
    vims = {"k": {"vimId": "k8s", "vimType": "kubernetes"}}
    await world.reached(await world.instantiate(other, "cnf", vimConnectionInfo=vims), "COMPLETED")
    before = [(await world.call("GET", f"{url}/{each}")).headers["ETag"] for each in (cnf, other)]
    crash = "container web ends again and again with exit code 1"
    good = [a_pod(each, f"web-{each}") for each in (cnf, other)]
    bad = [a_pod(each, f"bad-{each}", ready=False, trouble=crash) for each in (cnf, other)]
    world.inventory.resources = [*good, *bad]
    for _ in range(50):
        await world.bus.publish(trouble(bad[0]))
        await world.bus.publish(trouble(good[0]))
    await world.bus.publish(trouble(bad[1]))
    rows = {each["id"]: each for each in await problems(world, 2)}
    (pod, _) = below(await tree(world, cnf), "pod")
    assert (pod["name"], pod["text"], pod["health"]) == (f"bad-{cnf}", crash, "problem")
    assert (rows[cnf]["health"], rows[cnf]["text"], rows[cnf]["since"]) == (
        "problem", f"Pod {pod['name']}: {pod['text']}", pod["since"],
    )  # fmt: skip
    assert [each["id"] for each in await listed(world, "problem=true&limit=1")] == sorted([cnf, other])
    assert len(await listed(world, "problem=true&state=INSTANTIATED")) == 2
    assert await listed(world, "problem=true&vnfdId=none") == []
    mark = await world.store.get("vnf_troubles", cnf)
    assert mark is not None
    assert mark.revision == 1
    (by_id,) = [each for each in await listed(world) if each["id"] == other]
    assert by_id["health"] == "problem"
    world.inventory.resources = [*good, bad[1]]
    await world.bus.publish(trouble(good[0]))
    assert [each["id"] for each in await problems(world, 1)] == [other]
    await until_true(are_published)
    assert [each.text for each in news if each.vnf_instance_id == cnf] == [rows[cnf]["text"], ""]
    world.inventory.failure = ServiceUnavailable("infra-k8s does not answer (TimeoutError)")
    assert [each["id"] for each in await listed(world, "problem=true")] == [other], "what is stored is shown"
    assert [(await world.call("GET", f"{url}/{each}")).headers["ETag"] for each in (cnf, other)] == before
    await world.reached(await world.ask(other, "terminate", {"terminationType": "FORCEFUL"}), "COMPLETED")
    assert await listed(world, "problem=true") == []


async def test_a_round_marks_what_no_report_was_about(tmp_path: Path) -> None:
    """A report was lost, or a pod was on its way for too long; a mark without an instance goes too."""
    async with lcm_world(tmp_path, drift_every_s=0.2) as world:
        await world.store.insert("vnf_troubles", "gone", {"id": "gone", "text": "Pod a: x", "since": DRIFT["since"]})
        cnf = await deployed(world)
        world.inventory.resources = [a_pod(cnf, "web-1", ready=False)]
        (row,) = await problems(world, 1)
        assert (row["id"], row["text"]) == (cnf, "Pod web-1: it is not ready")
        world.inventory.resources = [a_pod(cnf, "web-1", ready=True)]
        await problems(world, 0)
        assert await world.store.get("vnf_troubles", "gone") is None


async def _shows_links_and_volumes(world: World, cnf: str) -> None:
    """Check the links and volumes of a VNF: as their owner has them, or as they are stored."""
    claimed = {"persistent_volume_id": "volume-1", "claim_name": "data"}
    used = {"internal/networks": [NETWORK.model_dump(mode="json")], "internal/volumes": [claimed]}
    await world.store.update("vnf_instances", cnf, used)

    async def shown() -> list[dict[str, Any]]:
        root = await tree(world, cnf)
        found = [*below(root, "virtual-link"), *below(root, "persistent-volume")]
        return [{name: value for name, value in each.items() if name not in {"kind", "children"}} for each in found]

    link = {"id": "link-1", "type": "nad", "href": f"{world.url}/multicloud/v1/virtual-links/link-1"}
    volume = {"id": "volume-1", "href": f"{world.url}/multicloud/v1/persistent-volumes/volume-1"}
    assert await shown() == [
        link | {"name": "protected", "health": "problem", "text": "virtual link link-1 does not exist"},
        volume | {"name": "data", "health": "problem", "text": "persistent volume volume-1 does not exist"},
    ]
    moments = {"created_at": "2026-11-26T10:00:00Z", "updated_at": "2026-11-26T11:00:00Z"}
    world.links.by_id["link-1"] = VirtualLink(
        id="link-1", cloud_region_id="op/edge", name="inner", type="nad", metadata={}, spec={}, use_count=1,
        references=(), status="DEGRADED", status_detail="no bridge on worker-1", **moments,
    )  # fmt: skip
    world.volumes.by_id["volume-1"] = known = PersistentVolume(
        id="volume-1", cloud_region_id="op/edge", name="disk", phase="Pending", size="1Gi", access_modes=("ReadWriteOnce",),
        volume_mode="Filesystem", storage_class="fast", reclaim="Delete", **moments,
    )  # fmt: skip
    degraded = {
        "state": "DEGRADED",
        "health": "problem",
        "text": "no bridge on worker-1",
        "since": "2026-11-26T11:00:00Z",
    }
    disk = volume | {"name": "disk", "type": "fast"}
    assert await shown() == [
        link | {"name": "inner", **degraded},
        disk | {"state": "Pending", "health": "progressing", "text": "the volume is Pending"},
    ]
    world.volumes.by_id["volume-1"] = known.model_copy(update={"phase": "Bound"})
    assert (await shown())[1] == disk | {"state": "Bound", "health": "ok"}


async def test_a_tree_shows_the_objects_of_an_instantiation_that_has_not_ended(world: World) -> None:
    """It is stored nowhere but in the inventory, and its pods say why it is stuck."""
    await world.sample("cnf")
    world.vims.add("k8s", "kubernetes")
    cnf = await world.create("cnf")
    world.twins.waiting.add("infra.k8s.apply_objects")
    vims = {"k": {"vimId": "k8s", "vimType": "kubernetes"}}
    await world.instantiate(cnf, "cnf", vimConnectionInfo=vims)
    await world.twins.has_asked(1)
    assert [each["kind"] for each in (await tree(world, cnf))["children"]] == ["operation"]
    more = {"api_version": "apps/v1", "phase": "", "node": "", "vdu_id": None}
    trouble = "container web: the image a:1 cannot be pulled (ErrImagePull)"
    world.inventory.resources = [
        a_pod(cnf, "web", kind="Deployment", id="1", **more),
        a_pod(cnf, "pages", kind="ConfigMap", id="2", watch="stale since t", **more),
        a_pod(cnf, "web-7d9f-a", ready=False, trouble=trouble),
        a_pod(cnf, "alone"),
    ]
    root = await tree(world, cnf)
    release, operation = root["children"]
    assert (operation["kind"], operation["health"]) == ("operation", "progressing")
    assert [(each["name"], each["health"]) for each in release["children"]] == [
        ("web", "problem"), ("pages", "unknown"), ("alone", "ok"),
    ]  # fmt: skip
    assert release["children"][0]["children"][0]["text"] == trouble
    await world.twins.release()


async def test_a_tree_shows_the_machines_of_a_cluster_that_is_being_built(world: World) -> None:
    """The instance has them at the end of the operation, but a person asks for them while a node does not join."""
    await world.sample("cluster")
    world.twins.answers["infra.openstack.create_resources"] = ResourcesCreated(resources=RESOURCES)
    world.twins.waiting.add("mgmt.run_phase")
    cluster = await world.create("cluster")
    await world.instantiate(cluster, "cluster")
    await world.twins.has_asked(2)
    root = await tree(world, cluster)
    assert root["state"] == "NOT_INSTANTIATED"
    assert {each["kind"] for each in root["children"]} == {"operation", "stack"}
    assert {(each["id"], each["role"]) for each in below(root, "server")} == {
        ("server-m1", "master"), ("server-w1", "worker"), ("server-w2", "worker"),
    }  # fmt: skip
    world.vims.records["vim-1"].update(status="UNREACHABLE", status_reason="no route")
    assert {each["text"] for each in below(await tree(world, cluster), "server")} == {"VIM lab: no route"}
    await world.twins.release()


async def test_a_tree_shows_the_operation_that_runs(world: World) -> None:
    operation = await world.an_operation_in("FAILED_TEMP") if await world.sample() else ""
    instance = (await world.operation(operation))["vnfInstanceId"]
    root = await tree(world, instance)
    first = root["children"][0]
    assert (first["kind"], first["id"], first["state"], first["health"]) == (
        "operation", operation, "FAILED_TEMP", "problem",
    )  # fmt: skip
    assert "no host" in first["text"]
    assert (root["health"], root["state"]) == ("problem", "NOT_INSTANTIATED")


def parts(node: Node) -> int:
    """Return how many parts a node and all below it stand for."""
    return (node.count or 1) + sum(map(parts, node.children))


@pytest.mark.parametrize("ill", ["problem", "progressing"])
def test_a_tree_of_5000_objects_is_short_and_hides_no_problem(ill: Health) -> None:
    """Equal ones are one node, wherever the one that is not equal stands, and whatever is below it."""
    objects = [
        Node(kind="object", name=f"c{number}", type="ConfigMap" if number % 2 else "Secret", health="ok")
        for number in range(5000)
    ]
    hidden = Node(kind="pod", name="the one", type="Pod", health=ill)
    objects[2777].children.append(hidden)
    few = [Node(kind="pod", name=f"p{number}", type="Pod", health="ok") for number in range(10)]
    root = Node(kind="release", name="ns", health="ok", children=[*objects, *few])
    arrange(root, group=True)
    first, *others = root.children
    assert (first.name, first.children, root.health) == ("c2777", [hidden], ill)
    assert [each.name for each in others] == ["2500 Secrets", "2499 ConfigMaps", *(each.name for each in few)]
    assert parts(root) == 1 + 5000 + 1 + 10


def test_every_attribute_of_a_node_is_described() -> None:
    every = Node(
        kind="pod", name="n", health="ok", id="i", type="t", role="r", state="s", text="x", since="s", count=1,
        addresses=["a"], place="p", node_state="Ready", vim_id="v", href="h", children=[],
        drift=DriftMark(state="CHANGED", since="s", reason="r"),
    )  # fmt: skip
    assert set(every.shown()) == set(TreeNode.model_fields)
    assert TreeNode.model_validate(every.shown()).model_dump(exclude_none=True) == every.shown()
