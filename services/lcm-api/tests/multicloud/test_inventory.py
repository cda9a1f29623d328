"""``/multicloud/v1/inventory/resources`` over HTTP, and each line of its bad input (multicloud.md chapter 14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubevnfm_access.caller import Role, needed_role
from kubevnfm_events.inventory import NetworkAddresses
from kubevnfm_infra_k8s.adapters.leases import LEADER
from kubevnfm_infra_k8s.adapters.stored_inventory import OBJECTS, REGIONS
from kubevnfm_infra_k8s.adapters.turns import TURNS
from kubevnfm_infra_k8s.domain.inventory.record import ObjectRecord, record_id
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_store.port import DocumentStore
from worlds.link_gateway import link_gateway

_RESOURCES = "/multicloud/v1/inventory/resources"
_UID = "0f0e0d0c-0000-4000-8000-00000000000"


async def _store(store: DocumentStore, number: int, **more: Any) -> None:
    address = NetworkAddresses(network="ns/net", addresses=(f"fd00::{number}", f"10.0.0.{number}"))
    values: dict[str, Any] = {
        "id": record_id("vim", "", "Pod", "ns", f"web-{number}"), "vim_id": "vim", "vnf_instance_id": f"vnf-{number}",
        "api_version": "v1", "kind": "Pod", "namespace": "ns", "name": f"web-{number}", "uid": f"{_UID}{number}",
        "networks": (address,), "created_at": "2030-01-01T00:00:00Z", "changed_at": "2030-01-01T00:00:01.000Z", **more,
    }  # fmt: skip
    record = ObjectRecord.model_validate(values)
    await store.insert(OBJECTS, record.id, record.document())


async def test_objects_are_found_by_each_filter_in_pages_with_the_state_of_their_watch(
    cluster: LabCluster, tmp_path: Path
) -> None:
    """MC-055, MC-056, MC-107: and a filter that finds nothing is 200 []."""
    async with link_gateway(cluster, tmp_path) as gateway:
        store = gateway.world.store

        async def found(query: str) -> list[dict[str, Any]]:
            answer = (await gateway.call("GET", f"{_RESOURCES}?{query}")).must(200)
            return [*answer.json]

        assert await found("") == []
        for number in (1, 2, 3):
            await _store(store, number)
        await _store(
            store, 4, id=record_id("other", "apps", "Deployment", "", "web"), vim_id="other", name="web",
            api_version="apps/v1", kind="Deployment", namespace="", networks=(), priority=2, vdu_id="VDU1",
        )  # fmt: skip
        for query, names in (
            ("cloud_region_id=op/one", {"web-1", "web-2", "web-3"}),
            ("cloud_region_id=op/none", set()),
            ("vnf_id=vnf-2", {"web-2"}),
            ("kind=Deployment", {"web"}),
            ("namespace=ns&name=web-3", {"web-3"}),
            ("name=other", set()),
            (f"uid={_UID}1", {"web-1"}),
            ("ip=10.0.0.2", {"web-2"}),
            ("ip=FD00:0:0::3", {"web-3"}),
            ("ip=10.0.0.2&vnf_id=vnf-1", set()),
        ):
            assert {each["name"] for each in await found(query)} == names, query
        first = (await gateway.call("GET", f"{_RESOURCES}?kind=Pod&limit=2")).must(200)
        link = first.headers["Link"].partition(">")[0].removeprefix(f"<{gateway.url}")
        second = (await gateway.call("GET", link)).must(200)
        assert sorted(each["name"] for each in [*first.json, *second.json]) == ["web-1", "web-2", "web-3"]
        assert "Link" not in second.headers

        (shown,) = await found("name=web")
        assert (shown["vdu_id"], shown["priority"], shown["watch"]) == ("VDU1", 2, "stale since ")
        lease = {"holder": "x", "until": "2999-01-01T00:00:00.000Z", "renewed_at": "r", "began_at": "b", "term": 2}
        await store.insert(TURNS, LEADER, lease)
        stale = {"apiVersion": "v1", "kind": "Pod", "since": "2030-01-01T00:00:00.000Z", "reason": "no answer in time"}
        for vim_id, marks in (("vim", [stale]), ("other", [])):
            body = {"cluster": "c", "kinds": [], "namespaces": [], "news": False, "watch": {"term": 2, "stale": marks}}
            await store.insert(REGIONS, vim_id, body)
        watches = {each["name"]: (each["watch"], each.get("watch_detail")) for each in await found("")}
        assert watches["web"] == ("current", None)
        assert watches["web-1"] == ("stale since 2030-01-01T00:00:00.000Z", "no answer in time")
        # Another process has taken over, and has not listed the region yet.
        await store.update(TURNS, LEADER, {"term": 3})
        assert (await found("name=web"))[0]["watch"] == "stale since b"
        await store.update(TURNS, LEADER, {"until": "2020-01-01T00:00:00.000Z"})
        assert (await found("name=web"))[0]["watch"] == "stale since r"

        for query in (
            "colour=red", "ip=10.0.0", "ip=", "ip=fe80::1%25eth0", "ip=10.0.0.1/24", "uid=", "uid=x", f"uid={_UID}1%0a",
            "limit=0", "nextpage_opaque_marker=x", "vnf_id=a&vnf_id=b",
        ):  # fmt: skip
            (await gateway.call("GET", f"{_RESOURCES}?{query}")).problem(400)


async def test_health_shows_watches_and_the_export_which_an_admin_begins_again(
    cluster: LabCluster, tmp_path: Path
) -> None:
    """MC-111, MC-080: 202 with the export on; the lag, and what waits. `resync` without A&AI is 409."""
    health, resync = "/multicloud/v1/inventory/health", "/multicloud/v1/inventory/resync"
    async with link_gateway(cluster, tmp_path) as gateway:
        assert (await gateway.call("GET", health)).must(200).json == {"watching": False, "stale": []}
        problem = (await gateway.call("POST", resync)).problem(409)
        assert "aai_url" in problem["detail"]
        (await gateway.call("POST", resync, {"all": True})).problem(400)
        (await gateway.call("GET", f"{health}?x=1")).problem(400)
        marks = [
            {"apiVersion": "v1", "kind": "Pod", "since": "2030-01-01T00:00:00.000Z", "reason": "no answer in time"}
        ]
        body = {"cluster": "c", "kinds": [], "namespaces": [], "news": False, "watch": {"term": 2, "stale": marks}}
        await gateway.world.store.insert(REGIONS, "vim", body)
        (stale,) = (await gateway.call("GET", health)).must(200).json["stale"]
        assert (stale["vim_id"], stale["kind"], stale["reason"]) == ("vim", "Pod", "no answer in time")

    assert needed_role("POST", resync) is Role.ADMIN
    assert needed_role("GET", health) is Role.READER
    (tmp_path / "exported").mkdir()
    async with link_gateway(cluster, tmp_path / "exported", aai_url="https://aai.example") as gateway:
        asked = (await gateway.call("POST", resync)).must(202).json
        shown = (await gateway.call("GET", health)).must(200).json["export"]
        assert (shown["waiting"], shown["resync"], "reachable" in shown) == (0, asked, False)
        await gateway.world.store.insert(
            OBJECTS, "x", {"id": "x", "export": {"due": "2030-01-01", "since": "2020-01-01T00:00:00Z", "vim_id": "vim"}}
        )
        shown = (await gateway.call("GET", health)).must(200).json["export"]
        assert (shown["waiting"], shown["waiting_since"], shown["lag_s"] > 86400) == (1, "2020-01-01T00:00:00Z", True)
