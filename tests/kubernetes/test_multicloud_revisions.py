"""Dry runs and revisions of a VNF on a real API server: scenario 5 of chapter 17 of docs/specification/multicloud.md."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from callers.user import User
from real.real_cluster import GIVEN, Body, RealCluster
from real.real_regions import RealRegion, registered
from real.region_packages import PLAIN

pytestmark = pytest.mark.skipif(GIVEN is None, reason="no cluster is given: see docs/real-kubernetes.md")

_EXTRA: Final = """\
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {code: "$code", "user": "${user:-none}"}
"""
_ORDER: Final = """\
artifacts: [{file: login.yaml, priority: 0}, {file: web.yaml, priority: 1}, {file: service.yaml, priority: 2}]
values: {tag: "1.27", db: {port: 5432}}
"""
_CODE: Final = "open-sesame-9"


@pytest.fixture
async def region(user: User, cluster: RealCluster, tmp_path: Path) -> AsyncIterator[RealRegion]:
    async with registered(user, cluster, tmp_path) as given:
        yield given


def actions(report: Body) -> dict[str, str]:
    """Return the action on each object of a dry run."""
    return {each["kind"]: each["action"] for each in report["objects"]}


def fields(report: Body, kind: str) -> list[tuple[str, Any, Any]]:
    """Return the differences of the object of a kind."""
    (found,) = (each for each in report["objects"] if each["kind"] == kind)
    return [(each["path"], each.get("from"), each.get("to")) for each in found["fields"]]


async def test_a_dry_run_says_what_each_change_does(region: RealRegion) -> None:
    """MC-033, MC-042: up, values, PATCH, rollback to the first revision, down (scenario 5)."""
    package = await region.onboard({**PLAIN, "artifact-order.yaml": _ORDER, "login.yaml": _EXTRA})
    place = region.place()
    new = {"cloud_region_id": region.id, "csar_id": package, "namespace": place, "values": {"code": _CODE}}
    planned = (await region.call("POST", "/vnf_instances?dry_run=diff", new)).must(200).json
    assert actions(planned) == dict.fromkeys(("Namespace", "Secret", "Deployment", "Service"), "create")
    assert {each["kind"] for each in planned["objects"] if each["checked"]} == {"Namespace"}
    assert await region.cluster.get(f"/api/v1/namespaces/{place}") is None
    vnf = await region.bring_up(package, namespace=place, values={"code": _CODE})
    one = f"/vnf_instances/{vnf['vnf_id']}"
    assert vnf["revision"] == 1

    patch = {"values": {"tag": "1.28", "code": f"{_CODE}-2"}}
    planned = (await region.call("PATCH", f"{one}?dry_run=diff", patch)).must(200).json
    assert planned["summary"] == {"update": 2, "unchanged": 2}
    assert fields(planned, "Deployment") == [
        ("/spec/template/spec/containers/0/image", "nginx:1.27", "nginx:1.28"),
    ]  # fmt: skip
    assert fields(planned, "Secret") == [("/data/code", "***", "***")]
    assert [each["kind"] for each in planned["objects"] if each["restarts"]] == ["Deployment"]
    for mode in ("render", "server"):
        shown = (await region.call("PATCH", f"{one}?dry_run={mode}", patch)).must(200)
        assert _CODE not in shown.text
        assert {each["kind"] for each in shown.json["objects"]} == {*actions(planned)}
    (deployment,) = await region.read("apps/v1", "Deployment", namespace=place, name="web")
    assert deployment["metadata"]["generation"] == 1
    (await region.call("PATCH", one, patch)).must(200)
    planned = (await region.call("PATCH", f"{one}?dry_run=diff", patch)).must(200).json
    assert planned["summary"] == {"unchanged": 4}

    back = {"revision": 1}
    planned = (await region.call("POST", f"{one}/rollback?dry_run=diff", back)).must(200).json
    assert fields(planned, "Deployment") == [("/spec/template/spec/containers/0/image", "nginx:1.28", "nginx:1.27")]
    shown = (await region.call("POST", f"{one}/rollback", back)).must(200).json
    assert (shown["status"], shown["revision"]) == ("READY", 3)
    (deployment,) = await region.read("apps/v1", "Deployment", namespace=place, name="web")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.27"
    listed = (await region.call("GET", f"{one}/revisions")).must(200).json
    assert [(each["revision"], each["cause"], each["result"]) for each in listed] == [
        (3, "rollback", "READY"), (2, "patch", "READY"), (1, "create", "READY"),
    ]  # fmt: skip
    assert listed[0]["digest"] == listed[2]["digest"] != listed[1]["digest"]

    # Refusals of the API server, and objects of another party, are shown without an operation.
    refused = (await region.call("PATCH", f"{one}?dry_run=diff", {"values": {"db": {"port": 0}}})).must(200).json
    assert "spec.ports[0].port" in next(each["error"] for each in refused["objects"] if each["kind"] == "Service")
    async with region.cluster.namespace() as theirs:
        await region.cluster.make(f"/api/v1/namespaces/{theirs}/secrets", {"metadata": {"name": "login"}})
        planned = (await region.call("POST", "/vnf_instances?dry_run=diff", {**new, "namespace": theirs})).must(200)
        (login,) = (each for each in planned.json["objects"] if each["kind"] == "Secret")
        assert (login["action"], "another party" in login["error"]) == ("adopt", True)
    await region.remove(vnf)
    assert await region.is_empty(place)
