"""A subject with an API of its own: address pools (tests/support/address_pools), which are no VNF instances."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
from address_pools import api
from address_pools.world import PoolWorld, pool_world
from callers.documented import an_app, documents
from kubevnfm_lcm_api.gateway.openapi.document import make_document
from kubevnfm_lcm_api.gateway.openapi.routes import ROOT
from kubevnfm_lcm_api.http.documents import json_pointer

POOLS = "/pools/v1/address-pools"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[PoolWorld]:
    async with pool_world(tmp_path) as running:
        yield running


async def created(world: PoolWorld, *networks: str, name: str = "a") -> str:
    """Create a pool; return its path."""
    answer = (await world.call("POST", POOLS, {"name": name, "networks": networks})).must(202)
    assert answer.json["state"] == "PENDING"
    location = answer.headers["Location"]
    assert location == f"{world.url}{POOLS}/{answer.json['id']}"
    return location.removeprefix(world.url)


async def shown(world: PoolWorld, path: str) -> Any:
    return (await world.call("GET", path)).must(200).json


async def test_the_owner_brings_the_outside_to_the_wanted_state(world: PoolWorld) -> None:
    path = await created(world, "192.0.2.0/25")
    pool_id = path.rpartition("/")[2]
    await world.pools.reconcile()
    assert (await shown(world, path))["state"] == "READY"
    assert world.router.networks == {pool_id: (IPv4Network("192.0.2.0/25"),)}

    (await world.call("PATCH", path, {"networks": ["192.0.2.0/24"]})).must(202)
    assert (await shown(world, path))["state"] == "PENDING"
    await world.pools.reconcile()
    assert world.router.networks == {pool_id: (IPv4Network("192.0.2.0/24"),)}

    (await world.call("DELETE", path)).must(202)
    assert (await shown(world, path))["state"] == "DELETING"
    await world.pools.reconcile()
    (await world.call("GET", path)).problem(404)
    assert world.router.networks == {}


async def test_an_outside_that_does_not_answer_is_asked_again_in_the_next_round(world: PoolWorld) -> None:
    path = await created(world, "192.0.2.0/25")
    world.router.is_away = True
    await world.pools.reconcile()
    assert (await shown(world, path))["state"] == "PENDING"
    world.router.is_away = False
    for _ in range(2):
        await world.pools.reconcile()
        assert (await shown(world, path))["state"] == "READY"


async def test_conditions_hold_for_a_document_of_another_service(world: PoolWorld) -> None:
    path = await created(world, "192.0.2.0/25")
    first = (await world.call("GET", path)).must(200).headers["ETag"]
    (await world.call("GET", path, headers={"If-None-Match": first})).must(304)
    await world.pools.reconcile()
    stale, change = {"If-Match": first}, {"networks": ["192.0.2.0/24"]}
    (await world.call("PATCH", path, change, stale)).problem(412)
    (await world.call("DELETE", path, headers=stale)).problem(412)
    (await world.call("PATCH", path, change, {"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"})).problem(412)
    now = (await world.call("GET", path)).must(200).headers["ETag"]
    assert now != first
    (await world.call("PATCH", path, change, {"If-Match": now})).must(202)
    (await world.call("DELETE", path)).must(202)


async def test_an_error_points_to_each_wrong_attribute(world: PoolWorld) -> None:
    """Both the gateway's check of the body and the owner's check against what it has do so."""
    problem = (await world.call("POST", POOLS, {"name": "", "networks": ["192.0.2.0/24", "x"]})).problem(400)
    assert [error["pointer"] for error in problem["errors"]] == ["/name", "/networks/1"]
    assert "invalidParams" not in problem
    await created(world, "192.0.2.0/25", "198.51.100.0/24")
    taken = {"name": "b", "networks": ["192.0.2.64/26", "203.0.113.0/24", "198.51.100.7/32"]}
    problem = (await world.call("POST", POOLS, taken)).problem(422)
    assert [error["pointer"] for error in problem["errors"]] == ["/networks/0", "/networks/2"]
    assert all("a free network expected" in error["message"] for error in problem["errors"])
    assert (await world.call("GET", POOLS)).must(200).json[1:] == []


async def test_what_every_route_checks_is_checked_here_too(world: PoolWorld) -> None:
    (await world.call("GET", f"{POOLS}?colour=blue")).problem(400)
    (await world.call("GET", POOLS, headers={"Accept": "text/html"})).problem(406)
    (await world.call("POST", POOLS, headers={"Content-Type": "text/csv"})).problem(400)
    (await world.call("PUT", POOLS, {})).problem(405)
    (await world.call("GET", f"{POOLS}/..%2Fx")).problem(404)


async def test_each_document_has_its_own_routes_and_types(world: PoolWorld) -> None:
    document = (await world.call("GET", "/pools/v1/openapi.json")).must(200).json
    documents = ("openapi.json", "openapi.yaml", "swagger.json", "docs")
    own = {POOLS, f"{POOLS}/{{id}}", *(f"/pools/v1/{name}" for name in documents)}
    assert set(document["paths"]) == own
    assert document["info"]["title"] == "address pools"
    assert set(document["components"]["schemas"]) == {
        "InvalidParam",
        "PointedError",
        "PointedProblem",
        "Pool",
        "PoolPatch",
        "PoolRequest",
    }
    page = (await world.call("GET", "/pools/v1/docs")).must(200).raw.decode()
    assert all(f"<code>{path}</code>" in page for path in own)


def test_a_subject_with_a_document_of_its_own_changes_nothing_of_the_document_at_the_root() -> None:
    nothing: Any = None
    with_pools = an_app(partial(api.add_to, pools=nothing))
    assert make_document(with_pools, ROOT, version="tested") == documents()[ROOT.prefix]


@pytest.mark.parametrize(
    ("field", "pointer"),
    [
        ("", ""),
        ("name", "/name"),
        ("ports[0]/name", "/ports/0/name"),
        ("a[1][2]", "/a/1/2"),
        ("labels/a~1b", "/labels/a~1b"),
    ],
)
def test_a_field_becomes_a_json_pointer(field: str, pointer: str) -> None:
    assert json_pointer(field) == pointer
