"""Filter, selectors and paging over HTTP, of each resource that can be listed (api.md chapter 5)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from kubevnfm_store.query import Query, Stored, by
from worlds.lcm_world import LINKED, World, lcm_world

LISTS = {
    "instances v2": "/vnflcm/v2/vnf_instances",
    "instances v1": "/vnflcm/v1/vnf_instances",
    "occurrences v2": "/vnflcm/v2/vnf_lcm_op_occs",
    "occurrences v1": "/vnflcm/v1/vnf_lcm_op_occs",
    "packages": "/vnfpkgm/v1/vnf_packages",
    "packages by VNFD": "/vnfpkgm/v1/onboarded_vnf_packages",
    "subscriptions v2": "/vnflcm/v2/subscriptions",
    "subscriptions v1": "/vnflcm/v1/subscriptions",
    "subscriptions of packages": "/vnfpkgm/v1/subscriptions",
}
EXCLUDED = {
    "instances": {"vnfConfigurableProperties", "vimConnectionInfo", "instantiatedVnfInfo", "metadata", "extensions"},
    "occurrences v2": {"operationParams", "error", "resourceChanges", "changedInfo", "changedExtConnectivity"},
    "occurrences v1": {"error", "resourceChanges", "changedInfo", "changedExtConnectivity"},
    "packages": {"softwareImages", "additionalArtifacts", "userDefinedData", "checksum"},
    "subscriptions": set(),
}
"""The attributes that a list omits by default, by list or by resource."""
NAMED = {"instances": "metadata", "occurrences": "resourceChanges", "packages": "checksum", "subscriptions": "filter"}
"""An optional complex attribute of each."""


def entry(table: dict[str, Any], name: str) -> Any:
    return table[name] if name in table else table[name.split(" ")[0]]


async def listed(world: World, path: str, query: str = "") -> list[dict[str, Any]]:
    answer = await world.call("GET", f"{path}?{query}", headers={"Version": "2.0.0"} if "/v2/" in path else {})
    return list(answer.must(200).json)


@pytest.fixture
async def filled(tmp_path: Path) -> AsyncIterator[World]:
    """One of each: an instance with everything, its failed and its completed operation, its package, subscriptions."""
    async with lcm_world(tmp_path, allowed_networks="127.0.0.0/8") as world:
        yield await fill(world)


async def fill(world: World) -> World:
    await world.sample()
    await world.an_operation_in("FAILED_TEMP")
    instance_id = await world.create(
        metadata={"site": "north", "a,b~@": "c,d", "app/tier": "front"}, vnfInstanceName="it's, (fine)"
    )
    await world.reached(await world.instantiate(instance_id), "COMPLETED")
    for version in ("v1", "v2"):
        body = {"callbackUri": "http://127.0.0.1:9/", "filter": {"operationTypes": ["SCALE"]}}
        made = await world.call("POST", f"/vnflcm/{version}/subscriptions", body, headers=
                                {"Version": "2.0.0"} if version == "v2" else {})  # fmt: skip
        made.must(201)
    body = {"callbackUri": "http://127.0.0.1:9/", "filter": {"usageState": ["IN_USE"]}}
    (await world.package_subscriptions("POST", body=body)).must(201)
    return world


async def test_each_row_of_the_selector_table_for_each_list(filled: World) -> None:
    """API-093."""
    for name, path in LISTS.items():
        everything = await listed(filled, path, "all_fields")
        has = set().union(*(set(each) for each in everything))
        excluded, named = entry(EXCLUDED, name), entry(NAMED, name)
        assert named in has, name

        async def shown(query: str, path: str = path) -> set[str]:
            return set().union(*(set(each) for each in await listed(filled, path, query)))

        for flag in ("all_fields", "all_fields=", "all_fields=true"):
            assert await shown(flag) == has, name
        for query in ("", "exclude_default", "exclude_default="):
            assert await shown(query) == has - excluded, name
        selected = await shown(f"fields={named}")
        assert named in selected, name
        assert not selected & (excluded - {named}), name
        assert await shown(f"exclude_fields={named}") == has - {named}, name
        assert await shown(f"fields={named}&exclude_default") == has - (excluded - {named}), name
        for wrong in ("all_fields&fields=id", "all_fields&exclude_default", f"fields={named}&exclude_fields={named}",
                      f"exclude_fields={named}&exclude_default", "fields=wrong_field", "exclude_fields=wrong_field"):  # fmt: skip
            answer = await filled.call("GET", f"{path}?{wrong}", headers={"Version": "2.0.0"} if "/v2/" in path else {})
            answer.problem(400)


async def test_a_path_selects_a_member_and_exclude_fields_is_taken_as_clients_spell_it(filled: World) -> None:
    """API-093, API-094."""
    for each in await listed(filled, LISTS["instances v2"], "fields=instantiatedVnfInfo/vnfState"):
        info = each.get("instantiatedVnfInfo", {"vnfState": None, "flavourId": None})
        assert set(info) == {"vnfState", "flavourId"}
        assert "metadata" not in each
    path = LISTS["occurrences v2"]
    assert await listed(filled, path, "exclude-fields=error") == await listed(filled, path, "exclude_fields=error")


FOUND = {
    "(eq,vnfInstanceName,'it''s, (fine)')": 1,
    "(neq,vnfInstanceName,'it''s, (fine)')": 1,
    "(eq,instantiationState,INSTANTIATED)": 1,
    "(in,instantiationState,INSTANTIATED,NOT_INSTANTIATED)": 2,
    "(nin,instantiationState,INSTANTIATED)": 1,
    "(cont,vnfInstanceName,fine)": 1,
    "(ncont,vnfInstanceName,fine)": 1,
    "(gt,vnfdVersion,0)": 2,
    "(gte,vnfdVersion,1.0)": 2,
    "(lt,vnfdVersion,0)": 0,
    "(lte,vnfdVersion,1.0)": 2,
    "(eq,metadata/site,north)": 1,
    "(eq,metadata/a~ab~0~b,'c,d')": 1,
    "(eq,metadata/app~1tier,front)": 1,
    "(eq,metadata/app/tier,front)": 0,
    "(eq,metadata/@key,site)": 1,
    "(eq,metadata/@key,app/tier)": 1,
    "(eq,metadata/@key,nothing)": 0,
    "(neq,metadata/site,south)": 1,
    "(neq,instantiatedVnfInfo/vnfcResourceInfo/vduId,unknown)": 1,
    "(eq,instantiatedVnfInfo/vnfcResourceInfo/vduId,unknown)": 0,
    "(eq,instantiatedVnfInfo/vnfState,STARTED);(eq,metadata/site,north)": 1,
    "(eq,instantiatedVnfInfo/vnfState,STARTED);(eq,metadata/site,south)": 0,
}


async def test_each_filter_operator_selects_by_its_meaning(filled: World) -> None:
    """API-090, API-091: what is missing fits no operator, neq neither."""
    for expression, count in FOUND.items():
        for path in (LISTS["instances v2"], LISTS["instances v1"]):
            found = await listed(filled, path, f"all_fields&filter={quote(expression)}")
            assert len(found) == count, f"{path} {expression}"


async def test_expressions_on_one_array_meet_in_one_element(filled: World) -> None:
    """API-091."""
    (instance,) = await listed(filled, LISTS["instances v2"], "all_fields&filter=(eq,instantiationState,INSTANTIATED)")
    vnfcs = instance["instantiatedVnfInfo"]["vnfcResourceInfo"]
    array = "instantiatedVnfInfo/vnfcResourceInfo"
    one = f"(eq,{array}/id,{vnfcs[0]['id']});(eq,{array}/computeResource/resourceId,"
    own, other = vnfcs[0]["computeResource"]["resourceId"], "another's".replace("'", "''")
    assert len(await listed(filled, LISTS["instances v2"], f"filter={quote(f'{one}{own})')}")) == 1
    assert await listed(filled, LISTS["instances v2"], "filter=" + quote(f"{one}'{other}')")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "(like,id,x)", "(eq,id)", "(eq,id,a,b)", "(eq,noSuchAttribute,x)", "(eq,id,x", "eq,id,x", "(eq,id,x)(eq,id,y)",
        "(eq,id,x);", "(eq,id,'x)", "(eq,_links/self,x)", ";".join(["(eq,id,x)"] * 21), "(in,id" + ",x" * 101 + ")",
    ],
)  # fmt: skip
async def test_a_malformed_filter_is_refused_by_each_list(world: World, wrong: str) -> None:
    """API-092."""
    for path in LISTS.values():
        headers = {"Version": "2.0.0"} if "/v2/" in path else {}
        problem = (await world.call("GET", f"{path}?filter={quote(wrong)}", headers=headers)).problem(400)
        assert problem["invalidParams"][0]["name"] == "filter"


@pytest.mark.parametrize(
    "wrong", ["(eq,isAutomaticInvocation,perhaps)", "(gt,startTime,yesterday)", "(eq,isCancelPending,1)"]
)
async def test_a_value_that_does_not_convert_is_refused(world: World, wrong: str) -> None:
    """API-092."""
    (await world.lcm("GET", f"/vnf_lcm_op_occs?filter={wrong}")).problem(400)


async def walk(world: World, path: str, query: str) -> list[list[dict[str, Any]]]:
    pages, url = [], f"{path}?{query}"
    while url:
        answer = (await world.call("GET", url, headers={"Version": "2.0.0"} if "/v2/" in path else {})).must(200)
        pages.append(answer.json)
        link = re.fullmatch(r'<(\S+)>; rel="next"', answer.headers.get("Link", ""))
        url = link[1].removeprefix(world.url) if link else ""
    return pages


async def test_the_next_page_keeps_filter_and_selectors_though_only_the_marker_is_sent(world: World) -> None:
    """API-095, API-096."""
    await world.sample()
    made = [await world.create(vnfInstanceName=f"page {i}", metadata={"n": i}) for i in range(5)]
    await world.create(vnfInstanceName="other")
    for path in (LISTS["instances v2"], LISTS["instances v1"]):
        query = f"filter={quote('(cont,vnfInstanceName,page)')}&fields=metadata"
        pages = await walk(world, path, query)
        assert [len(page) for page in pages] == [2, 2, 1]
        assert [each["id"] for page in pages for each in page] == made
        assert [each["metadata"]["n"] for page in pages for each in page] == list(range(5))
    first = await world.lcm("GET", "/vnf_instances")
    marker = re.search(r"nextpage_opaque_marker=([^>]+)>", first.headers["Link"])
    assert marker is not None
    for foreign in ("/vnflcm/v1/vnf_instances", "/vnflcm/v2/vnf_lcm_op_occs", "/vnfpkgm/v1/vnf_packages"):
        (await world.call("GET", f"{foreign}?nextpage_opaque_marker={marker[1]}")).problem(400 if "v1/vnf_i" not in foreign
                                                                                          else 406)  # fmt: skip
    damaged = marker[1][:-4] + ("AAAA" if marker[1][-4:] != "AAAA" else "BBBB")
    (await world.lcm("GET", f"/vnf_instances?nextpage_opaque_marker={damaged}")).problem(400)
    more = f"/vnf_instances?nextpage_opaque_marker={marker[1]}&all_fields"
    (await world.lcm("GET", more)).problem(400)
    assert len((await world.lcm("GET", "/vnf_instances?all_records=yes")).must(200).json) == 6


async def test_a_page_reads_a_page_of_documents(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """API-097: what the database hands out is counted; that it finds it by an index is the store's contract."""
    await world.sample()
    for i in range(12):
        await world.create(vnfInstanceName=f"many {i}")
    read: list[int] = []
    find = world.store.find

    async def counted(collection: str, query: Query) -> Sequence[Stored]:
        found = await find(collection, query)
        read.append(len(found))
        return found

    monkeypatch.setattr(world.store, "find", counted)
    answer = await world.lcm("GET", f"/vnf_instances?filter={quote('(cont,vnfInstanceName,many)')}")
    assert len(answer.must(200).json) == 2
    assert read == [3], "the page, and one to know whether there is another"


async def test_a_list_reads_no_resources_of_instances(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = await filled.store.find("vnf_instances", Query(by(instantiationState="INSTANTIATED")))
    assert [set(one.body["internal"]) >= {"deployments", "request"} for one in stored] == [True]
    read: list[Stored] = []
    find = filled.store.find

    async def recorded(collection: str, query: Query) -> Sequence[Stored]:
        found = await find(collection, query)
        read.extend(found)
        return found

    monkeypatch.setattr(filled.store, "find", recorded)
    for path in (LISTS["instances v2"], LISTS["instances v1"]):
        assert len(await listed(filled, path, "all_fields")) == 2
    assert len(read) == 4
    for one in read:
        assert not set(one.body["internal"]) & {"deployments", "parameters", "request", "connections"}


async def test_created_metadata_goes_over_the_vnfds_and_keeps_what_it_does_not_declare(world: World) -> None:
    """API-022."""
    await world.sample()
    instance_id = await world.create(metadata={"undeclared": {"nested": True}})
    assert (await world.lcm("GET", f"/vnf_instances/{instance_id}")).json["metadata"]["undeclared"] == {"nested": True}


async def test_accepted_and_done_have_no_body_and_location_leads_to_the_occurrence(world: World) -> None:
    """API-013."""
    await world.sample()
    for call, version in ((world.v1, {}), (world.lcm, {"Version": "2.0.0"})):
        instance_id = await world.create()
        for task, body in (("instantiate", LINKED), ("terminate", {"terminationType": "FORCEFUL"})):
            answer = await call("POST", f"/vnf_instances/{instance_id}/{task}", body)
            assert answer.must(202).raw == b""
            location = answer.headers["Location"]
            assert location.startswith(f"{world.url}/vnflcm/")
            (await world.call("GET", location.removeprefix(world.url), headers=version)).must(200)
            await world.reached(location.rpartition("/")[2])
        assert (await call("DELETE", f"/vnf_instances/{instance_id}")).must(204).raw == b""
