"""The samples for the multi-cloud API on a real API server: scenarios of chapter 17 of docs/specification/multicloud.md.

Nothing runs machines there: the tests write the status that KubeVirt would write.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
import yaml
from callers.user import SAMPLES, User, sample_body
from real.real_cluster import GIVEN, Body, RealCluster
from real.real_regions import RealRegion, registered

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

READY: Final = {
    "printableStatus": "Running", "created": True, "ready": True, "conditions": [{"type": "Ready", "status": "True"}]
}  # fmt: skip
STAGES: Final = (
    ("registry", "database", "broker"),
    ("core-metadata", "core-data"),
    ("core-command", "support-notifications", "support-scheduler", "app-rules"),
    ("device-virtual", "device-rest", "ui"),
)
AFTER: Final = {
    "core-command": ("core-metadata",), "support-notifications": ("database",), "support-scheduler": ("database",),
    "app-rules": ("core-data", "broker"), "ui": ("app-rules",),
}  # fmt: skip


@pytest.fixture
async def region(user: User, cluster: RealCluster, tmp_path: Path) -> AsyncIterator[RealRegion]:
    """The given cluster as a region of its own for each test."""
    async with registered(user, cluster, tmp_path) as given:
        yield given


def files_of(sample: str) -> dict[str, str]:
    """Return the files of a sample that its order applies, by name."""
    return {path.name: path.read_text() for path in (SAMPLES / sample / "Files/kubernetes").iterdir()}


def twelve_services() -> dict[str, str]:
    """Return the files of the sample `edgex`, with one object in each, as the forms of ONAP want it."""
    files: dict[str, str] = {}
    for name, text in files_of("edgex").items():
        first, _, second = text.partition("---\n")
        files |= {name: first} | ({f"service-{name}": second} if second else {})
    return files


def orders() -> Iterator[tuple[str, str]]:
    """Yield an order of twelve services in all three forms, and one with edges in place of priorities.

    The map form has one place for each kind.
    """
    staged = [("configuration",), *STAGES]
    every = [f"{name}.yaml" for stage in STAGES for name in stage]
    services = {"service": [f"service-{file}" for file in every]}
    last = [{"file": file, "priority": len(staged)} for file in services["service"]]
    own = [{"file": f"{name}.yaml", "priority": number} for number, stage in enumerate(staged) for name in stage]
    listed = [{"deployment": [f"{name}.yaml" for name in stage]} for stage in STAGES]
    first = {"configmap": ["configuration.yaml"]}
    edges = [
        {"file": f"{name}.yaml", "after": [f"{each}.yaml" for each in AFTER.get(name, ())] or ["configuration.yaml"]}
        for stage in STAGES
        for name in stage
    ]
    yield "own", yaml.safe_dump({"artifacts": [*own, *last]})
    yield "list", yaml.safe_dump({"resources": [first, *listed, services]})
    yield "map", yaml.safe_dump({"resources": {**first, "deployment": every, **services}}, sort_keys=False)
    yield "edges", yaml.safe_dump({"artifacts": [{"file": "configuration.yaml"}, *edges, *last]})


@asynccontextmanager
async def seen_deployments(region: RealRegion, place: str) -> AsyncIterator[dict[str, list[str]]]:
    """Yield the names of the Deployments of a namespace in the order in which they are made, and in which they go."""
    seen: dict[str, list[str]] = {"ADDED": [], "DELETED": []}

    async def watch() -> None:
        async for kind, body in region.cluster.watched(f"/apis/apps/v1/namespaces/{place}/deployments"):
            if kind in seen:
                seen[kind].append(body["metadata"]["name"])

    task = asyncio.create_task(watch())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def in_stages(names: Sequence[str], stages: Sequence[Sequence[str]]) -> list[set[str]]:
    """Return the names in parts as long as the stages are."""
    left = iter(names)
    return [{next(left) for _ in stage} for stage in stages]


@pytest.mark.parametrize(("form", "order"), [*orders()])
async def test_twelve_services_come_up_and_go_in_order(region: RealRegion, form: str, order: str) -> None:
    """MC-010, MC-011, MC-012, MC-013, MC-014 (scenario 1)."""
    place = region.place()
    package = await region.onboard({**twelve_services(), "artifact-order.yaml": order})
    async with seen_deployments(region, place) as seen:
        vnf = await region.bring_up(package, namespace=place, values={"site": "plant-1", "log_level": "INFO"})
        assert len(vnf["vnf_components"]["deployment"]) == len(vnf["vnf_components"]["service"]) == 12
        await region.remove(vnf)
        made, gone = seen["ADDED"], seen["DELETED"]
    assert (len(made), set(made)) == (12, set(gone))
    if form == "edges":
        for name, before in AFTER.items():
            assert all(made.index(each) < made.index(name) for each in before), made
            assert all(gone.index(each) > gone.index(name) for each in before), gone
    elif form != "map":
        assert in_stages(made, STAGES) == [set(stage) for stage in STAGES]
        assert in_stages(gone, STAGES[::-1]) == [set(stage) for stage in STAGES[::-1]]
    assert await region.is_empty(place)


async def test_a_name_server_is_changed_and_returns_to_its_first_revision(region: RealRegion) -> None:
    """MC-022, MC-033, MC-042: each change does what its dry run has said (scenario 5)."""
    place = region.place()
    vnf = await region.bring_up(await region.onboard(files_of("vdns")), namespace=place)
    one = f"/vnf_instances/{vnf['vnf_id']}"
    zone = f"/api/v1/namespaces/{place}/configmaps/zone"
    first = (await region.cluster.get(zone) or {})["data"]
    change = {"values": {"servers": 3, "domain": "example.net"}}
    for method, path, body in (("PATCH", one, change), ("POST", f"{one}/rollback", {"revision": 1})):
        planned = (await region.call(method, f"{path}?dry_run=diff", body)).must(200).json
        changed = {(each["kind"], each["name"]) for each in planned["objects"] if each["action"] != "unchanged"}
        assert changed == {("ConfigMap", "zone"), ("Deployment", "dns")}
        before = await specs_of(region, place)
        assert (await region.call(method, path, body)).must(200).json["status"] == "READY"
        after = await specs_of(region, place)
        assert {name for name, spec in after.items() if spec != before[name]} == {"dns"}
    assert (await region.cluster.get(zone) or {})["data"] == first
    await region.remove(vnf)
    assert await region.is_empty(place)


async def specs_of(region: RealRegion, place: str) -> dict[str, Body]:
    """Return the spec of each Deployment of a namespace."""
    listed = await region.cluster.get(f"/apis/apps/v1/namespaces/{place}/deployments") or {}
    return {each["metadata"]["name"]: each["spec"] for each in listed["items"]}


async def a_link(region: RealRegion, name: str) -> str:
    """Make a link that a planner uses; return its id."""
    spec = {"macvlan": {"master": "eth1", "mode": "bridge", "ipam": {"type": "static"}}}
    asked = {"cloud_region_id": region.id, "name": f"{name}-{uuid4().hex[:6]}", "type": "nad", "spec": spec}
    return str((await region.call("POST", "/virtual-links", {**asked, "reference": "so"})).must(201).json["id"])


async def count_of(region: RealRegion, link: str) -> int:
    """Return how many use a link, but for the planner."""
    shown = (await region.call("GET", f"/virtual-links/{link}")).must(200).json
    return int(shown["use_count"]) - 1


async def comes_up(region: RealRegion, sample: str, links: Sequence[str], machine: str = "") -> Body:
    """Bring a sample up by its own request, on two links; ``machine``: one that runs, as KubeVirt would say."""
    asked = sample_body(sample, "bring_up")
    members: dict[str, Any] = {"networks": asked["networks"], "namespace": region.place()}
    by_name = dict(zip(("LINK_ID", "SECOND_LINK_ID"), links, strict=True))
    for each in members["networks"]:
        each["virtual_link_id"] = by_name[each["virtual_link_id"]]
    vnf = await region.start(await region.onboard(files_of(sample)), **members)
    if machine:
        path = f"/apis/kubevirt.io/v1/namespaces/{members['namespace']}/virtualmachines/{machine}"
        await region.write_status(path, READY)
    return await region.settled(vnf)


async def test_a_machine_and_containers_share_two_links(region: RealRegion) -> None:
    """MC-060, MC-065, MC-069, MC-086: the samples `firewall`, `router` and `vfw` (scenarios 3, 4, 5)."""
    links = [await a_link(region, "inner"), await a_link(region, "outer")]
    counts = []

    async def count() -> None:
        counts.append([await count_of(region, each) for each in links])

    firewall = await comes_up(region, "firewall", links, "firewall")
    await count()
    router = await comes_up(region, "router", links)
    await count()
    await region.remove(firewall)
    await count()
    await region.remove(router)
    await count()
    vfw = await comes_up(region, "vfw", links, "firewall")
    await count()
    assert vfw["vnf_components"]["virtualmachine"] == ["firewall"]
    one = f"/vnf_instances/{vfw['vnf_id']}"
    changed = (await region.call("PATCH", one, {"values": {"streams": 9}})).must(200).json
    assert (changed["status"], changed["revision"]) == ("READY", 2)
    generator = f"/apis/apps/v1/namespaces/{vfw['namespace']}/deployments/generator"
    for streams, back in (("9", {"revision": 1}), ("5", None)):
        (container,) = (await region.cluster.get(generator) or {})["spec"]["template"]["spec"]["containers"]
        assert container["args"][-1] == f"--parallel={streams}"
        if back:
            (await region.call("POST", f"{one}/rollback", back)).must(200)
    await region.remove(vfw)
    assert counts == [[1, 1], [2, 2], [1, 1], [0, 0], [1, 1]]
    for each in links:
        (await region.call("DELETE", f"/virtual-links/{each}?reference=so")).must(204)


async def test_data_go_from_one_vnf_to_the_next(region: RealRegion) -> None:
    """MC-100, MC-102, MC-103, MC-104: the sample `edge` with a volume, twice, in two namespaces (scenario 6)."""
    source = {"nfs": {"server": "192.0.2.9", "path": "/data"}}
    wanted = {"cloud_region_id": region.id, "name": f"data-{uuid4().hex[:6]}", "size": "1Gi", "source": source}
    wanted["access_modes"] = ["ReadWriteOnce"]
    made = (await region.call("POST", "/persistent-volumes", wanted)).must(201).json
    one, asked = f"/persistent-volumes/{made['id']}", sample_body("edge", "bring_up_with_volume")
    package = await region.onboard(files_of("edge"))
    asked["volumes"][0]["persistent_volume_id"] = made["id"]
    for _ in range(2):
        place = region.place()
        vnf = await region.bring_up(package, namespace=place, values=asked["values"], volumes=asked["volumes"])
        claim = await region.cluster.get(f"/api/v1/namespaces/{place}/persistentvolumeclaims/data") or {}
        assert (claim["spec"]["volumeName"], claim["status"]["phase"]) == (made["pv"], "Bound")
        refused = (await region.call("DELETE", one)).must(409).json
        assert (refused["type"], refused["holders"]) == ("in-use", [f"vnf:{vnf['vnf_id']}"])
        await region.remove(vnf)
        assert await region.is_empty(place)
    gone = (await region.call("DELETE", one)).must(200).json
    assert gone["data"] == "kept"
