"""The calls of clients of ONAP's plug-in (multicloud.md scenario 12, MC-129, MC-132, MC-133)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from callers.documented import onap_documented
from kubevnfm_lab.kubernetes.cluster import LabCluster
from worlds.kubeconfigs import a_kubeconfig
from worlds.lcm_world import Answer
from worlds.multicloud_world import PASSWORD, VNFS, a_gateway
from worlds.region_world import REGIONS, RegionWorld

MOUNTS = ("/v1", "/api/multicloud-k8s/v1/v1")


async def asked(session: aiohttp.ClientSession, method: str, url: str, data: Any = None) -> Answer:
    """Call without a media type, as ONAP's clients may; the answer is checked against the document of ONAP's paths."""
    async with session.request(method, url, data=data, headers={"Prefer": "wait=60"}) as response:
        answer = Answer(response.status, response.headers, await response.read())
        onap_documented().check(method, str(response.url.relative()), answer.status, answer.headers, answer.raw)
    if answer.status >= 400:
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert answer.raw.strip()
    return answer


async def test_the_four_routes_of_document_003(tmp_path: Path) -> None:
    """MC-002, MC-113, MC-129, MC-133, and the bad input of chapter 15."""
    async with a_gateway(tmp_path, onap_compat=True) as gateway:
        world = gateway.world

        async def call(method: str, path: str, body: Any = None, *, raw: bytes | None = None) -> Answer:
            data = raw if body is None else json.dumps(body).encode()
            return await asked(world.session, method, f"{world.url}{path}", data)

        facts = {"csar_id": gateway.csar_id, "namespace": "ns1", "vnf_instance_name": "one"}
        given = {"oof_parameters": [{"password": PASSWORD}]}
        for mount in MOUNTS:
            many = f"{mount}/vnf_instances"
            made = (await call("POST", f"{many}/", {"cloud_region_id": "edge", **facts, **given})).must(201).json
            assert (made["cloud_region_id"], made["namespace"]) == ("edge", "ns1")
            ours = (await gateway.call("GET", f"{VNFS}/{made['vnf_id']}")).must(200).json
            assert (ours["status"], ours["cloud_region_id"]) == ("READY", "op/edge")
            assert made["vnf_components"] == ours["vnf_components"] != {}
            here = f"{many}/edge/ns1"
            assert (await call("GET", here)).must(200).json == {"vnf_id_list": [made["vnf_id"]]}
            shown = (await call("GET", f"{here}/{made['vnf_id']}")).must(200).json
            assert shown["vnf_components"] == made["vnf_components"]
            for elsewhere in (f"{many}/edge/ns2", f"{many}/edge/ns2/{made['vnf_id']}", f"{many}/none/ns1"):
                (await call("GET", elsewhere)).must(404)
            (await call("DELETE", f"{many}/edge/ns2/{made['vnf_id']}")).must(404)
            for password in (str(made), str(shown)):
                assert PASSWORD not in password
            gone = (await call("DELETE", f"{here}/{made['vnf_id']}")).must(202)
            assert gone.raw == b""
            operations = (
                await world.lcm("GET", "/vnf_lcm_op_occs?filter=(eq,operation,TERMINATE)&all_records=yes")
            ).json
            for each in operations:
                await world.reached(each["id"])
            (await call("GET", here)).must(404)
            (await call("DELETE", f"{here}/{made['vnf_id']}")).must(404)

            # Bad input.
            (await call("POST", many, raw=b"")).must(400)
            (await call("POST", many, raw=b"{")).must(422)
            (await call("POST", many, raw=b"[]")).must(422)
            (await call("POST", many, {"cloud_region_id": "edge"})).must(422)
            (await call("POST", many, {"csar_id": gateway.csar_id})).must(422)
            (await call("POST", many, {**facts, "cloud_region_id": "edge", "namespace": "Not one"})).must(422)
            (await call("POST", many, {**facts, "cloud_region_id": "none"})).must(404)
            # Only the other API has an answer to these: without it they would do nothing, or the contrary.
            here_again = {**facts, **given, "cloud_region_id": "edge"}
            in_regions = {"regions": [{"cloud_region_id": "edge"}]}
            for member in (in_regions, {"parallel": 2}, {"stop_after_failures": 1}, {"clone_of": made["vnf_id"]}):
                assert next(iter(member)).encode() in (await call("POST", many, {**here_again, **member})).must(422).raw
            assert b"dry_run" in (await call("POST", f"{many}?dry_run=server", here_again)).must(422).raw
            (await call("DELETE", f"{here}/{made['vnf_id']}?orphan=true")).must(422)
            ambiguous = (await call("POST", many, {**facts, "cloud_region_id": "twice"})).must(409)
            assert b"op, other" in ambiguous.raw
            (await call("GET", f"{many}/twice/ns1")).must(409)
        world.regions.away.add("op/edge")
        assert (
            (await call("POST", many, {**facts, **given, "cloud_region_id": "edge"})).must(503).headers["Retry-After"]
        )
        world.regions.away.clear()
        world.twins.failing.add("infra.k8s.apply_objects")
        assert b"no host" in (await call("POST", many, {**facts, **given, "cloud_region_id": "edge"})).must(500).raw


@pytest.mark.parametrize("mount", MOUNTS)
async def test_a_region_is_registered_by_connectivity_info(world: RegionWorld, cluster: LabCluster, mount: str) -> None:
    """MC-072, MC-075, MC-132."""
    many = f"{world.url}{mount}/connectivity-info"
    records = {"connectivity-records": [{"connectivity-record-name": "sdn", "password": "pass-of-sdn"}]}
    metadata = {"cloud-region": "edge", "cloud-owner": "op", "other-connectivity-list": records}

    def form(**changes: str) -> aiohttp.FormData:
        data = aiohttp.FormData()
        data.add_field("metadata", json.dumps({**metadata, **changes}), content_type="application/json")
        data.add_field("file", a_kubeconfig(cluster), filename="kubeconfig")
        return data

    made = (await asked(world.session, "POST", many, form())).must(201)
    assert (made.json["cloud-region"], made.json["cloud-owner"], made.json["kubeconfig"]) == ("edge", "op", "***")
    assert made.json["other-connectivity-list"]["connectivity-records"][0]["connectivity-record-name"] == "sdn"
    shown = (await asked(world.session, "GET", f"{many}/edge")).must(200)
    assert shown.json == made.json
    for answer in (made, shown):
        assert b"pass-of-sdn" not in answer.raw
        assert cluster.admin_token.encode() not in answer.raw
    assert (await world.call("GET", f"{REGIONS}/op/edge")).must(200).json["status"] == "ACTIVE"
    (await asked(world.session, "POST", many, form(**{"cloud-owner": "other"}))).must(201)
    assert b"op, other" in (await asked(world.session, "GET", f"{many}/edge")).must(409).raw
    (await world.call("DELETE", f"{REGIONS}/other/edge")).must(204)
    (await asked(world.session, "DELETE", f"{many}/edge")).must(204)
    (await asked(world.session, "GET", f"{many}/edge")).must(404)
    (await asked(world.session, "DELETE", f"{many}/edge")).must(404)
    (await asked(world.session, "POST", many)).must(400)
    (await asked(world.session, "POST", many, b"{}")).must(422)
    (await asked(world.session, "POST", many, form(colour="red"))).must(422)
    (await asked(world.session, "POST", many, form(**{"cloud-owner": ""}))).must(422)
