"""The requirements of capi.md chapter 10 on a receiver, over HTTP, where `test_service` does not show them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients import callback
from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_clients.ports import AwaitedCallbacks
from kubevnfm_credentials_receiver.settings import Settings
from kubevnfm_credentials_receiver.wiring import credentials_receiver
from kubevnfm_events import Envelope, Message
from kubevnfm_kit.errors import OutsideUnavailable
from kubevnfm_secrets import KeyRing
from kubevnfm_store.query import Query
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from worlds.receiver_twins import INSTANCE, MASTER, AwaitingLcm, a_body, a_kubeconfig, receiver_settings

RING = KeyRing.from_text(KeyRing.new_key())
NOW = datetime(2026, 9, 21, 12, 0, tzinfo=UTC)


class SetClock:
    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at


class Receivers:
    """Receivers that share a database, and the events that they publish."""

    def __init__(self, urls: list[str], session: aiohttp.ClientSession, store: SqliteStore) -> None:
        self.urls, self.session, self.store = urls, session, store
        self.envelopes: list[Envelope[Message]] = []

    def signed(self, raw: bytes, *, skew_s: int = 0, nonce: str | None = None, key: str = "key-1") -> dict[str, str]:
        return dict(
            callback.signed_headers(
                callback.instance_key(MASTER, INSTANCE),
                raw,
                vnf_instance_id=INSTANCE,
                timestamp=int(NOW.timestamp()) + skew_s,
                nonce=nonce or uuid4().hex,
                idempotency_key=key,
            )
        )

    async def post(
        self, raw: bytes, headers: Mapping[str, str], *, url: str | None = None
    ) -> tuple[int, Any, Mapping[str, str]]:
        async with self.session.post((url or self.urls[0]) + callback.PATH, data=raw, headers=headers) as response:
            return response.status, await response.json(content_type=None), dict(response.headers)

    async def nonces(self) -> int:
        return len(await self.store.find("callback_nonces", Query()))


@asynccontextmanager
async def running(
    folder: Path, *, count: int = 1, awaiting: AwaitedCallbacks | None = None, **changes: Any
) -> AsyncIterator[Receivers]:
    awaiting = awaiting or AwaitingLcm()
    settings: Settings = receiver_settings(**changes)
    async with (
        InProcessBus(RING) as bus,
        SqliteStore.open(folder / "store.db") as store,
        aiohttp.ClientSession() as session,
    ):
        receivers = Receivers([], session, store)

        async def keep(delivery: Delivery) -> Verdict:
            receivers.envelopes.append(delivery.envelope)
            return Ack()

        await bus.consume_events("ears", ["credentials.*"], keep)
        backends = Backends(bus, store, RING, SetClock())
        if count == 1:
            async with credentials_receiver(settings, backends, awaiting=awaiting) as one:
                receivers.urls.append(f"http://127.0.0.1:{one.port}")
                yield receivers
        else:
            async with (
                credentials_receiver(settings, backends, awaiting=awaiting) as one,
                credentials_receiver(settings, backends, awaiting=awaiting) as two,
            ):
                receivers.urls += [f"http://127.0.0.1:{each.port}" for each in (one, two)]
                yield receivers


@pytest.fixture
async def receivers(tmp_path: Path) -> AsyncIterator[Receivers]:
    async with running(tmp_path, failures_a_minute=1000) as receivers:
        yield receivers


def raw_body(**changes: Any) -> bytes:
    return json.dumps({**a_body(), **changes}).encode()


@pytest.mark.parametrize(("skew_s", "status"), [(-301, 401), (-299, 201), (299, 201), (301, 401)])
async def test_a_timestamp_may_differ_by_five_minutes(receivers: Receivers, skew_s: int, status: int) -> None:
    """CR-065."""
    raw = raw_body()
    assert (await receivers.post(raw, receivers.signed(raw, skew_s=skew_s)))[0] == status


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_body_may_have_256_kib(receivers: Receivers, is_chunked: bool) -> None:
    """CR-065: the size is checked first, whether it is announced or not."""
    for length, status in ((callback.LARGEST_BODY, 201), (callback.LARGEST_BODY + 1, 413)):
        raw = raw_body(padding="")
        raw = raw.replace(b'"padding": ""', b'"padding": "' + b"x" * (length - len(raw)) + b'"')
        assert len(raw) == length
        headers = receivers.signed(raw)
        if not is_chunked:
            assert (await receivers.post(raw, headers))[0] == status
            continue

        async def chunks(whole: bytes = raw) -> AsyncIterator[bytes]:
            for at in range(0, len(whole), 60_000):
                yield whole[at : at + 60_000]

        async with receivers.session.post(
            receivers.urls[0] + callback.PATH, data=chunks(), headers=headers
        ) as response:
            assert response.status == status


async def test_a_body_that_was_changed_by_one_byte_is_refused(receivers: Receivers) -> None:
    raw = raw_body()
    changed = raw[:-2] + bytes([raw[-2] ^ 1]) + raw[-1:]
    assert (await receivers.post(changed, receivers.signed(raw)))[0] == 401
    assert (await receivers.post(raw, receivers.signed(raw)))[0] == 201


async def test_every_refused_signature_looks_the_same(receivers: Receivers) -> None:
    """CR-067."""
    raw = raw_body()
    good = receivers.signed(raw)
    seen = set()
    for changes in (
        {callback.SIGNATURE: "v1=" + "0" * 64},
        {callback.KEY_ID: "vnf-unknown"},
        {callback.KEY_ID: f"vnf-{INSTANCE}.k2"},
        {callback.TIMESTAMP: "0"},
        {callback.CONTENT_SHA256: "0" * 64},
        {callback.NONCE: "short"},
        {callback.SIGNATURE: ""},
    ):
        status, problem, headers = await receivers.post(raw, {**good, **changes})
        assert "Date" in headers
        assert problem.pop("requestId") == headers["X-Request-ID"]
        own = ("Date", "Content-Length", "X-Request-ID")
        shown = {name: value for name, value in headers.items() if name not in own}
        seen.add((status, json.dumps(problem), json.dumps(shown)))
    assert len(seen) == 1
    assert next(iter(seen))[0] == 401


async def test_a_nonce_is_used_up_by_a_valid_signature_only_and_before_the_body_is_read(receivers: Receivers) -> None:
    """CR-065, CR-066."""
    raw, nonce = b"no JSON", uuid4().hex
    good = receivers.signed(raw, nonce=nonce)
    assert (await receivers.post(raw, {**good, callback.SIGNATURE: "v1=" + "0" * 64}))[0] == 401
    assert await receivers.nonces() == 0
    assert (await receivers.post(raw, good))[0] == 400
    assert await receivers.nonces() == 1
    status, problem, _ = await receivers.post(raw, good)
    assert (status, problem["type"]) == (409, "nonce-used")


async def test_two_receivers_accept_a_nonce_once(tmp_path: Path) -> None:
    """CR-065: the claim is atomic, whichever receiver gets the request."""
    raw = raw_body()
    async with running(tmp_path, count=2) as receivers:
        for turn in range(5):
            headers = receivers.signed(raw, nonce=f"{'n' * 22}{turn}", key=f"key-{turn}")
            answers = await asyncio.gather(*(receivers.post(raw, headers, url=url) for url in receivers.urls))
            statuses = sorted(status for status, _, _ in answers)
            assert statuses[1] == 409
            assert statuses[0] in (200, 201)
            assert await receivers.nonces() == turn + 1


async def test_a_nonce_is_kept_for_longer_than_its_timestamp_is_accepted(tmp_path: Path) -> None:
    """CR-065."""
    from kubevnfm_credentials_receiver.domain.errors import NonceUsed
    from kubevnfm_credentials_receiver.nonces import Nonces

    clock = SetClock()
    async with SqliteStore.open(tmp_path / "store.db") as store:
        nonces = Nonces(store, clock)
        await nonces.prepare()
        await nonces.claim(INSTANCE, "n" * 22)
        clock.at = NOW + timedelta(seconds=601)
        assert await nonces.purge() == 0
        with pytest.raises(NonceUsed):
            await nonces.claim(INSTANCE, "n" * 22)
        clock.at = NOW + timedelta(hours=1)
        assert await nonces.purge() == 1


async def test_a_created_that_comes_after_its_deletion_stores_nothing(receivers: Receivers) -> None:
    """CR-072: it was signed before, and was late on its way; also if the receiver has never heard of the cluster."""
    deleted, created = json.dumps(a_body(event="DELETED")).encode(), raw_body()
    assert (await receivers.post(deleted, receivers.signed(deleted, key="op:deleted")))[0] == 200
    late = receivers.signed(created, skew_s=-1, key="op:created")
    status, problem, _ = await receivers.post(created, late)
    assert (status, problem["type"]) == (409, "callback-superseded")
    # Signed between two deletions, and later than both.
    await receivers.post(deleted, receivers.signed(deleted, skew_s=20, key="op:deleted/2"))
    assert (await receivers.post(created, receivers.signed(created, skew_s=10, key="op:created/2")))[0] == 409
    (stored,) = await receivers.store.find("credentials", Query())
    assert (stored.body["status"], stored.body["sealed"]) == ("DELETED", "")
    assert receivers.envelopes == []
    assert (await receivers.post(created, receivers.signed(created, skew_s=20, key="op-2:created")))[0] == 201


async def test_credentials_that_come_after_later_ones_are_refused(receivers: Receivers) -> None:
    """CR-081: ROTATED before the CREATED that was sent before it; its repeat is known, and DELETED is always obeyed."""
    fresh = json.dumps(a_body(event="ROTATED", kubeconfig=a_kubeconfig("fresh"))).encode()
    assert (await receivers.post(fresh, receivers.signed(fresh, key="rotated")))[0] == 201
    old, deleted = raw_body(), json.dumps(a_body(event="DELETED")).encode()
    status, problem, _ = await receivers.post(old, receivers.signed(old, skew_s=-100, key="created"))
    assert (status, problem["type"]) == (409, "callback-superseded")
    assert (await receivers.post(fresh, receivers.signed(fresh, skew_s=-100, key="rotated")))[0] == 200
    (stored,) = await receivers.store.find("credentials", Query())
    assert stored.body["content_sha256"] == callback.sha256_hex(a_kubeconfig("fresh").encode())
    assert (await receivers.post(deleted, receivers.signed(deleted, skew_s=-100, key="deleted")))[0] == 200
    (stored,) = await receivers.store.find("credentials", Query())
    assert stored.body["status"] == "DELETED"


class SilentOnce(AwaitingLcm):
    """An lcm-api that is being started again."""

    async def awaited(self, vnf_instance_id: str, operation_id: str) -> AwaitedCallback | None:
        found = await super().awaited(vnf_instance_id, operation_id)
        if len(self.asked) == 1:
            raise OutsideUnavailable("lcm-api does not answer")
        return found


async def test_a_call_back_is_repeated_until_lcm_api_says_what_it_awaits(tmp_path: Path) -> None:
    """CR-074: nothing is stored before, and the same request is accepted later."""
    raw, lcm = raw_body(), SilentOnce()
    async with running(tmp_path, awaiting=lcm) as receivers:
        status, _, headers = await receivers.post(raw, receivers.signed(raw))
        assert (status, headers["Retry-After"]) == (503, "5")
        assert await receivers.store.find("credentials", Query()) == []
        assert (await receivers.post(raw, receivers.signed(raw)))[0] == 201
        # The operation has gone on since: a repeat is recognised without asking.
        lcm.known.clear()
        assert (await receivers.post(raw, receivers.signed(raw)))[0] == 200
        assert len(lcm.asked) == 2


async def test_health_and_metrics_are_served(receivers: Receivers) -> None:
    """CR-075."""
    raw = raw_body()
    await receivers.post(raw, receivers.signed(raw))
    await receivers.post(raw, {**receivers.signed(raw), callback.SIGNATURE: "v1=00"})
    for path in ("/health/live", "/health/ready"):
        async with receivers.session.get(receivers.urls[0] + path) as response:
            assert response.status == 200
    async with receivers.session.get(f"{receivers.urls[0]}/metrics") as response:
        assert response.status == 200
        text = await response.text()
    assert 'kubevnfm_callbacks_total{status="201"} 1' in text
    assert 'kubevnfm_callbacks_total{status="401"} 1' in text


async def test_secrets_are_in_no_event_document_answer_or_log(
    receivers: Receivers, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """CR-064, CR-071, CR-073."""
    body = a_body(kubeconfig=a_kubeconfig("swordfish-of-the-cluster"))
    raw = json.dumps(body).encode()
    answers = [
        await receivers.post(raw, receivers.signed(raw)),
        await receivers.post(raw, {**receivers.signed(raw), callback.SIGNATURE: "v1=00"}),
    ]
    broken = json.dumps({**body, "cluster": {}}).encode()
    answers.append(await receivers.post(broken, receivers.signed(broken, key="key-2")))
    async with asyncio.timeout(60):
        while not receivers.envelopes:  # noqa: ASYNC110 - a plain list has no event to wait for
            await asyncio.sleep(0.01)
    documents = [
        one.body for name in ("credentials", "callback_nonces") for one in await receivers.store.find(name, Query())
    ]
    captured = capsys.readouterr()
    seen = "\n".join(
        [
            *map(repr, answers),
            *map(repr, documents),
            *(repr(envelope.document(RING)) for envelope in receivers.envelopes),
            captured.out,
            captured.err,
            caplog.text,
        ]
    )
    encoded = body["credentials"]["kubeconfig"]
    key = callback.instance_key(MASTER, INSTANCE)
    for secret in ("swordfish-of-the-cluster", encoded, encoded[40:80], key.hex(), MASTER.hex()):
        assert secret not in seen
