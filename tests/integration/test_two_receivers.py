"""Two receivers of credentials on one database, over each adapter of the store: what races between them, and comes late."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients import callback
from kubevnfm_credentials_receiver.wiring import credentials_receiver
from kubevnfm_events import Message
from kubevnfm_events.credentials import CredentialsDeleted, CredentialsReceived
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.ids import new_id
from kubevnfm_secrets import KeyRing
from kubevnfm_store.mongo.store import MongoStore
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from servers.mongodb import mongodb_url
from worlds.receiver_twins import INSTANCE, MASTER, AwaitingLcm, a_body, a_kubeconfig, receiver_settings

__all__ = ["mongodb_url"]

RING = KeyRing.from_text(KeyRing.new_key())
ROUNDS = 5


@dataclass
class Pair:
    """Both receivers, and the events that they have published."""

    urls: Sequence[str]
    session: aiohttp.ClientSession
    store: DocumentStore
    events: list[Message] = field(default_factory=list)

    def signed(self, body: dict[str, Any], *, key: str, ago_s: int = 0, nonce: str | None = None) -> tuple[bytes, Any]:
        """Return a request that was signed so many seconds ago."""
        raw = json.dumps(body).encode()
        now = int(SystemClock().now().timestamp())
        headers = callback.signed_headers(
            callback.instance_key(MASTER, INSTANCE),
            raw,
            vnf_instance_id=INSTANCE,
            timestamp=now - ago_s,
            nonce=nonce or uuid4().hex,
            idempotency_key=key,
        )
        return raw, headers

    async def send(self, request: tuple[bytes, Any], receiver: int = 0) -> tuple[int, str]:
        """Return the status of the answer, and the type of its problem."""
        raw, headers = request
        url = self.urls[receiver] + callback.PATH
        async with self.session.post(url, data=raw, headers=headers) as response:
            answer = await response.json(content_type=None)
            return response.status, str(answer.get("type") or "")

    async def at_once(self, *requests: tuple[bytes, Any]) -> list[tuple[int, str]]:
        """Send all requests at the same time, to the receivers in turn; return the answers."""
        return await asyncio.gather(*(self.send(each, number % 2) for number, each in enumerate(requests)))

    async def has(self, count: int) -> list[Message]:
        """Return the events once there are so many."""
        async with asyncio.timeout(300):
            while len(self.events) < count:  # noqa: ASYNC110 - the bus hands events to a plain list
                await asyncio.sleep(0.01)
        return self.events

    async def records(self) -> list[dict[str, Any]]:
        return [dict(one.body) for one in await self.store.find("credentials", Query())]


@pytest.fixture(params=["sqlite", "mongodb"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        stores: list[DocumentStore]
        if request.param == "sqlite":
            # Its file belongs to one process, so both receivers are in that.
            stores = [await stack.enter_async_context(SqliteStore.open(tmp_path / "store.db"))] * 2
        else:
            url, name = request.getfixturevalue("mongodb_url"), f"test_{new_id().replace('-', '')[:12]}"
            stores = [await stack.enter_async_context(MongoStore.connect(url, name)) for _ in range(2)]
        bus = await stack.enter_async_context(InProcessBus(RING))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        both = [
            await stack.enter_async_context(
                credentials_receiver(receiver_settings(), Backends(bus, store, RING), awaiting=AwaitingLcm())
            )
            for store in stores
        ]
        one = Pair([f"http://127.0.0.1:{each.port}" for each in both], session, stores[0])

        async def keep(delivery: Delivery) -> Verdict:
            one.events.append(delivery.envelope.data)
            return Ack()

        await bus.consume_events("ears", ["credentials.*"], keep)
        yield one


async def test_a_nonce_is_accepted_once_whichever_receiver_gets_it(pair: Pair) -> None:
    """CR-065: replayed to both at the same moment."""
    for turn in range(ROUNDS):
        request = pair.signed(a_body(uid=f"uid-{turn}", name=f"c{turn}"), key=f"key-{turn}", nonce=f"{'n' * 22}{turn}")
        assert sorted(await pair.at_once(request, request)) == [(201, ""), (409, "nonce-used")]
    assert len(await pair.has(ROUNDS)) == ROUNDS


async def test_one_call_back_that_both_receive_is_stored_and_published_once(pair: Pair) -> None:
    """CR-073, CR-078: each try has a nonce of its own."""
    for turn in range(ROUNDS):
        body, key = a_body(uid=f"uid-{turn}", name=f"c{turn}"), f"key-{turn}"
        answers = await pair.at_once(*(pair.signed(body, key=key) for _ in range(4)))
        assert sorted(status for status, _ in answers) == [200, 200, 200, 201]
    assert len(await pair.records()) == ROUNDS
    events = await pair.has(ROUNDS)
    assert {type(event) for event in events} == {CredentialsReceived}
    assert len(events) == ROUNDS


async def test_a_deletion_wins_over_the_call_back_before_it_in_any_order(pair: Pair) -> None:
    """CR-072: the request for CREATED was on its way for two seconds, and arrives before, with or after DELETED."""
    stored = 0
    for turn in range(ROUNDS):
        uid, name = f"uid-{turn}", f"c{turn}"
        created = pair.signed(a_body(uid=uid, name=name), key=f"{turn}:created", ago_s=2)
        deleted = pair.signed(a_body(uid=uid, name=name, event="DELETED"), key=f"{turn}:deleted")
        outcome = await pair.at_once(created, deleted)
        assert outcome[0] in [(201, ""), (409, "callback-superseded")]
        assert outcome[1] == (200, "")
        stored += outcome[0][0] == 201
    assert [(one["status"], one["sealed"]) for one in await pair.records()] == [("DELETED", "")] * ROUNDS
    kinds = [type(event) for event in await pair.has(2 * stored)]
    assert (kinds.count(CredentialsReceived), kinds.count(CredentialsDeleted)) == (stored, stored)


async def test_the_later_of_two_credentials_stays_in_any_order(pair: Pair) -> None:
    """CR-081: ROTATED, and the CREATED that was sent before it."""
    for turn in range(ROUNDS):
        uid, name = f"uid-{turn}", f"c{turn}"
        created = pair.signed(a_body(uid=uid, name=name), key=f"{turn}:created", ago_s=2)
        fresh = a_body(uid=uid, name=name, event="ROTATED", kubeconfig=a_kubeconfig("fresh"))
        outcome = await pair.at_once(created, pair.signed(fresh, key=f"{turn}:rotated"))
        assert outcome[0] in [(201, ""), (409, "callback-superseded")]
        assert outcome[1][0] in (200, 201)
    wanted = callback.sha256_hex(a_kubeconfig("fresh").encode())
    assert [one["content_sha256"] for one in await pair.records()] == [wanted] * ROUNDS
