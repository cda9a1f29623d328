"""``Idempotency-Key`` over HTTP: a POST runs once, and its answer is given again (multicloud.md MC-005)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from callers.documented import documents
from healthy import healthy
from kubevnfm_access.caller import Caller, Role
from kubevnfm_access.credentials import Credentials
from kubevnfm_access.gate import Gate
from kubevnfm_access.middleware import Proxies
from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.errors import Conflict, OutsideUnavailable
from kubevnfm_kit.http import serving
from kubevnfm_kit.owners import Owners
from kubevnfm_lcm_api.gateway.app import make_app
from kubevnfm_lcm_api.http.bodies import FORM, JSON, read_json
from kubevnfm_lcm_api.http.context import HttpContext
from kubevnfm_lcm_api.http.documents import DOCUMENTS
from kubevnfm_lcm_api.http.routes import Answer as Described
from kubevnfm_lcm_api.http.routes import Parameter, Route, add_routes
from kubevnfm_lcm_api.multicloud.bodies import read_form
from kubevnfm_lcm_api.multicloud.idempotency import COLLECTION, LARGEST_ANSWER, LEASE_S, Claim, IdempotencyKeys
from kubevnfm_lcm_api.multicloud.repeats import once_for_a_key, seed_of
from kubevnfm_lcm_api.multicloud.services import DOCUMENT, PREFIX
from kubevnfm_store.query import AllOf, Query
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.engine_world import SetClock
from worlds.lcm_builders import RING
from worlds.lcm_world import Answer

THINGS = f"{PREFIX}/things"
BODY = {"name": "a", "password": "swordfish"}


class NamedCallers:
    """A caller of any name, without a proof."""

    challenge = "Bearer"

    async def caller(self, credentials: Credentials) -> Caller | None:
        return Caller(credentials.authorization[0], "test", frozenset({Role.ADMIN}))


@dataclass
class Resource:
    """A resource whose POST makes things, and can wait, fail or answer much."""

    store: SqliteStore
    clock: SetClock
    url: str = ""
    session: aiohttp.ClientSession | None = None
    seeds: list[str | None] = field(default_factory=list)
    """One for each time that the handler ran."""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = None
    more: str = ""

    async def create(self, request: web.Request) -> web.Response:
        form = request.content_type == FORM
        asked = await read_form(request, "file", limit_bytes=100) if form else await read_json(request)
        self.seeds.append(seed_of(request))
        self.begun.set()
        await self.go_on.wait()
        if self.error is not None:
            raise self.error
        made = {"number": len(self.seeds), "name": asked["name"], "token": "the-token-of-it", "more": self.more}
        return web.json_response(made, status=201, headers={"Location": f"{THINGS}/{len(self.seeds)}", "X-Other": "x"})

    def add_to(self, app: web.Application) -> None:
        app[DOCUMENTS].append(DOCUMENT)
        made = {201: Described("Made", is_any_object=True)}
        query = (Parameter("dry_run", "How"),)
        route = Route("Things", "POST", THINGS, self.create, "Make", made, body_types=(*JSON, FORM), query=query)
        add_routes(app, [once_for_a_key(route), once_for_a_key(Route("Things", "GET", THINGS, self.list_all, "", {}))])

    async def list_all(self, request: web.Request) -> web.Response:
        return web.json_response([])

    async def post(
        self,
        key: str | None = "k",
        body: object = BODY,
        *,
        caller: str = "alice",
        query: str = "",
        headers: Mapping[str, str] | None = None,
        data: object = None,
    ) -> Answer:
        sent = {"Authorization": caller, **({} if key is None else {"Idempotency-Key": key}), **(headers or {})}
        assert self.session is not None
        json_body = body if data is None else None
        async with self.session.post(f"{self.url}{THINGS}{query}", json=json_body, data=data, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def stored(self) -> str:
        return json.dumps([one.body for one in await self.store.find(COLLECTION, Query())])


@pytest.fixture
async def resource(tmp_path: Path) -> AsyncIterator[Resource]:
    async with SqliteStore.open(tmp_path / "keys.db") as store, aiohttp.ClientSession() as session:
        made = Resource(store, SetClock(), session=session)
        made.go_on.set()
        context = HttpContext(
            store=store, ring=RING, clock=made.clock, public_url=None, internal_token="t", page_size=100
        )
        app = make_app([made.add_to], context, healthy, {}, gate=Gate([NamedCallers()]), proxies=Proxies())
        async with serving(app, host="127.0.0.1", port=0) as port:
            made.url = f"http://127.0.0.1:{port}"
            yield made


async def test_the_first_answer_is_given_again(resource: Resource) -> None:
    """It is found by caller, path and key, for 24 hours; nothing of it is stored in clear."""
    first = (await resource.post()).must(201)
    again = (await resource.post()).must(201)
    assert (again.json, again.headers["Location"]) == (first.json, first.headers["Location"])
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert len(resource.seeds) == 1
    stored = await resource.stored()
    for clear in ("swordfish", "the-token-of-it", "alice", THINGS):
        assert clear not in stored
    assert (await resource.post(caller="bob")).must(201).json["number"] == 2
    assert (await resource.post("other")).must(201).json["number"] == 3
    assert (await resource.post(None)).must(201).json["number"] == 4
    resource.clock.ahead_s = 24 * 3600 + 1
    assert (await resource.post()).must(201).json["number"] == 5
    assert len(set(resource.seeds)) == 5  # None for the one without a key


async def test_another_request_under_the_key_is_409(resource: Resource) -> None:
    (await resource.post()).must(201)
    assert (await resource.post(body={"name": "b"})).problem(409)["type"] == "idempotency-key-reused"
    assert len(resource.seeds) == 1


async def test_a_dry_run_stores_no_key(resource: Resource) -> None:
    (await resource.post(query="?dry_run=render")).must(201)
    assert await resource.store.count(COLLECTION, AllOf(), limit=9) == 0
    (await resource.post("", query="?dry_run=render")).problem(400)
    assert (await resource.post()).must(201).json["number"] == 2


async def test_forms_of_other_boundaries_are_the_same_body(resource: Resource) -> None:
    def form(file: bytes) -> aiohttp.FormData:
        data = aiohttp.FormData()
        data.add_field("metadata", '{"name": "f"}', content_type="application/json")
        data.add_field("file", file, filename="f")
        return data

    assert (await resource.post(data=form(b"x"))).must(201).json == (await resource.post(data=form(b"x"))).must(
        201
    ).json
    (await resource.post(data=form(b"y"))).problem(409)
    assert len(resource.seeds) == 1


async def test_while_the_first_request_runs_another_is_409(resource: Resource) -> None:
    resource.go_on.clear()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(resource.post())
        await resource.begun.wait()
        running = await resource.post()
        assert running.problem(409)["type"] == "request-running"
        assert running.headers["Retry-After"] == "1"
        assert (await resource.post(body={"name": "b"})).problem(409)["type"] == "idempotency-key-reused"
        resource.go_on.set()
    assert (await resource.post()).must(201).json == first.result().must(201).json
    assert len(resource.seeds) == 1


async def test_a_refused_request_frees_its_key_and_a_broken_one_keeps_it_for_the_same_body(resource: Resource) -> None:
    resource.error = Conflict("no")
    (await resource.post()).problem(409)
    resource.error = OutsideUnavailable("away")
    (await resource.post(body={"name": "b"})).problem(503)
    resource.error = None
    (await resource.post(body={"name": "c"})).problem(409)
    made = (await resource.post(body={"name": "b"})).must(201)
    # The run that has ended with 503 may have made something, so the next one takes the same names.
    assert resource.seeds[1] == resource.seeds[2] != resource.seeds[0]
    assert (await resource.post(body={"name": "b"})).must(201).json == made.json
    (await resource.post("bad", data=b"{", headers={"Content-Type": "application/json"})).problem(400)
    (await resource.post("bad")).must(201)


async def test_after_the_end_of_a_process_its_lease_expires(resource: Resource) -> None:
    """Two gateways at once: one of them continues."""
    keys = IdempotencyKeys(resource.store, RING, resource.clock, Owners())
    (await resource.post()).must(201)
    (record,) = await resource.store.find(COLLECTION, Query())
    crashed = {"state": "running", "owner": "another process"}
    until = rfc3339(resource.clock.now() + timedelta(seconds=LEASE_S))
    await resource.store.update(COLLECTION, record.id, {**crashed, "leaseUntil": until})
    assert (await resource.post()).headers["Retry-After"] == "1"
    await keys.renew(Claim(record.id, "another process", ""))
    resource.clock.ahead_s = LEASE_S - 1
    (await resource.post()).problem(409)
    resource.clock.ahead_s = LEASE_S + 1
    answers = await asyncio.gather(*(resource.post() for _ in range(4)))
    assert {answer.status for answer in answers} <= {201, 409}
    assert {answer.json["number"] for answer in answers if answer.status == 201} == {2}
    assert resource.seeds == [resource.seeds[0]] * 2
    # The process that had stood still keeps no answer over that of the other.
    await keys.release(Claim(record.id, "another process", ""), is_refused=True)
    assert (await resource.post()).must(201).json["number"] == 2


async def test_the_claim_of_a_process_that_has_ended_is_free_at_once(resource: Resource) -> None:
    claim = await IdempotencyKeys(resource.store, RING, resource.clock, Owners()).claim("r", "d")
    assert isinstance(claim, Claim)
    await resource.store.update(COLLECTION, "r", {"owner": "the name of another process"})
    again = await IdempotencyKeys(resource.store, RING, resource.clock, Owners(is_alone=True)).claim("r", "d")
    assert isinstance(again, Claim)
    assert again.seed == claim.seed


async def test_a_cancelled_request_frees_its_key(resource: Resource) -> None:
    """As at the end of the process, when the gateway closes."""
    keys = IdempotencyKeys(resource.store, RING, resource.clock, Owners())
    claim = await keys.claim("r", "d")
    assert isinstance(claim, Claim)
    await keys.release(claim, is_refused=False)
    again = await keys.claim("r", "d")
    assert isinstance(again, Claim)
    assert (again.seed, again.owner == claim.owner) == (claim.seed, False)


async def test_an_answer_that_is_too_large_is_not_kept(resource: Resource) -> None:
    resource.more = "x" * LARGEST_ANSWER
    first = (await resource.post()).must(201)
    refused = (await resource.post()).problem(409)
    assert first.headers["Location"] in refused["detail"]
    assert "201" in refused["detail"]
    assert len(await resource.stored()) < 10_000
    assert len(resource.seeds) == 1


async def test_old_records_are_removed(resource: Resource) -> None:
    (await resource.post()).must(201)
    keys = IdempotencyKeys(resource.store, RING, resource.clock, Owners())
    await keys.remove_old()
    assert await resource.store.count(COLLECTION, AllOf(), limit=9) == 1
    resource.clock.ahead_s = 24 * 3600 + 1
    await keys.remove_old()
    assert await resource.store.count(COLLECTION, AllOf(), limit=9) == 0


async def test_bad_keys_are_refused_and_make_nothing(resource: Resource) -> None:
    """Chapter 3."""
    for key in ("", "k" * 129, "a\tb", "ä"):
        assert (await resource.post(key)).problem(400)["type"] == "invalid-input"
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b"), ("Authorization", "alice")]
    assert resource.session is not None
    async with resource.session.post(f"{resource.url}{THINGS}", json=BODY, headers=twice) as response:
        assert response.status == 400
    assert resource.seeds == []
    (await resource.post("k" * 128)).must(201)
    (await resource.post(" ~")).must(201)


def test_every_post_of_the_document_takes_a_key() -> None:
    posts = [methods["post"] for methods in documents()[PREFIX]["paths"].values() if "post" in methods]
    assert posts
    for post in posts:
        assert "Idempotency-Key" in [parameter["name"] for parameter in post["parameters"]]
        assert "409" in post["responses"]
