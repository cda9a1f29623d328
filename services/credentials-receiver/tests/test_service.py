"""The service over HTTP, as seen by senders, operators and vim-registry."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_clients import callback
from kubevnfm_clients.logs import HttpCredentials
from kubevnfm_credentials_receiver.wiring import credentials_receiver
from kubevnfm_events import Message
from kubevnfm_events.credentials import CredentialsDeleted, CredentialsReceived, CredentialsRotated
from kubevnfm_kit.errors import NotFound
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from worlds.receiver_twins import (
    CREDENTIALS_TOKEN,
    INSTANCE,
    MASTER,
    AwaitingLcm,
    a_body,
    a_kubeconfig,
    receiver_settings,
)

RING = KeyRing.from_text(KeyRing.new_key())


@dataclass
class Sender:
    session: aiohttp.ClientSession
    url: str

    async def send(
        self,
        body: dict[str, Any] | bytes,
        *,
        key: str = "key-1",
        instance: str = INSTANCE,
        nonce: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        signed = callback.signed_headers(
            callback.instance_key(MASTER, instance),
            raw,
            vnf_instance_id=instance,
            timestamp=int(time.time()),
            nonce=nonce or uuid4().hex,
            idempotency_key=key,
        )
        async with self.session.post(
            self.url + callback.PATH, data=raw, headers={**signed, **(headers or {})}
        ) as response:
            return response.status, await response.json(content_type=None), dict(response.headers)

    async def read(self, path: str = "", *, method: str = "GET") -> tuple[int, Any]:
        async with self.session.request(method, self.url + callback.PATH + path) as response:
            return response.status, await response.json(content_type=None) if response.status != 204 else None


@pytest.fixture
async def bus() -> AsyncIterator[InProcessBus]:
    async with InProcessBus(RING) as bus:
        yield bus


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore.open(tmp_path / "store.db") as store:
        yield store


@pytest.fixture
async def events(bus: InProcessBus) -> list[Message]:
    events: list[Message] = []

    async def keep(delivery: Delivery) -> Verdict:
        assert delivery.envelope.subject == INSTANCE
        events.append(delivery.envelope.data)
        return Ack()

    await bus.consume_events("ears", ["credentials.*"], keep)
    return events


@pytest.fixture
async def sender(bus: InProcessBus, store: SqliteStore) -> AsyncIterator[Sender]:
    async with (
        credentials_receiver(
            receiver_settings(failures_a_minute=5), Backends(bus, store, RING), awaiting=AwaitingLcm()
        ) as service,
        aiohttp.ClientSession() as session,
    ):
        yield Sender(session, f"http://127.0.0.1:{service.port}")


async def has(events: list[Message], count: int) -> None:
    async with asyncio.timeout(300):
        while len(events) < count:  # noqa: ASYNC110 - the bus hands events to a plain list
            await asyncio.sleep(0.01)


async def test_new_credentials_are_stored_published_and_answered(
    sender: Sender, events: list[Message], store: SqliteStore
) -> None:
    status, answer, headers = await sender.send(a_body())

    assert status == 201
    assert answer == {"id": answer["id"], "vimId": None, "status": "STORED"}
    assert headers["Location"] == f"{callback.PATH}/{answer['id']}"
    assert "Date" in headers
    await has(events, 1)
    assert events == [
        CredentialsReceived(
            credentials_id=answer["id"],
            vnf_instance_id=INSTANCE,
            cluster_name="workload",
            cluster_uid="uid-1",
            content_sha256=callback.sha256_hex(a_kubeconfig().encode()),
            vim_name="workload-vim",
            management_vim_id="vim-management",
        )
    ]
    stored = await store.get("credentials", answer["id"])
    assert stored is not None
    assert "swordfish" not in json.dumps(stored.body)


async def test_a_repeat_changes_nothing(sender: Sender, events: list[Message]) -> None:
    _, first, _ = await sender.send(a_body())
    status, second, _ = await sender.send(a_body())

    assert (status, second) == (200, first)
    await has(events, 1)
    assert len(events) == 1


async def test_two_simultaneous_call_backs_are_stored_once(sender: Sender, events: list[Message]) -> None:
    answers = await asyncio.gather(*(sender.send(a_body()) for _ in range(5)))

    assert sorted(status for status, _, _ in answers) == [200, 200, 200, 200, 201]
    await has(events, 1)
    assert len(events) == 1


async def test_an_idempotency_key_with_another_body_is_rejected(sender: Sender) -> None:
    await sender.send(a_body())
    status, problem, _ = await sender.send(a_body(kubeconfig=a_kubeconfig("other")))
    assert (status, problem["type"]) == (409, "idempotency-key-reused")


async def test_a_nonce_may_be_used_once(sender: Sender) -> None:
    nonce = uuid4().hex
    assert (await sender.send(a_body(), nonce=nonce))[0] == 201
    status, problem, _ = await sender.send(a_body(), nonce=nonce)
    assert (status, problem["type"]) == (409, "nonce-used")


async def test_rotated_credentials_replace_the_old_ones(sender: Sender, events: list[Message]) -> None:
    _, first, _ = await sender.send(a_body())
    status, second, _ = await sender.send(a_body(event="ROTATED", kubeconfig=a_kubeconfig("fresh")), key="key-2")

    assert (status, second["id"]) == (200, first["id"])
    await has(events, 2)
    assert isinstance(events[1], CredentialsRotated)
    async with aiohttp.ClientSession() as session:
        kubeconfig = await HttpCredentials(sender.url, CREDENTIALS_TOKEN, session).kubeconfig(first["id"])
    assert "fresh" in kubeconfig.reveal(RING)
    assert "swordfish" not in kubeconfig.reveal(RING)


async def test_deleted_erases_the_credentials(sender: Sender, events: list[Message], store: SqliteStore) -> None:
    _, first, _ = await sender.send(a_body())
    status, answer, _ = await sender.send(a_body(event="DELETED"), key="key-deleted")
    again = await sender.send(a_body(event="DELETED"), key="key-deleted-again")

    assert (status, answer["status"]) == (200, "DELETED")
    assert again[0] == 200
    await has(events, 2)
    assert isinstance(events[1], CredentialsDeleted)
    assert (await sender.read(f"/{first['id']}"))[0] == 404
    async with aiohttp.ClientSession() as session:
        with pytest.raises(NotFound):
            await HttpCredentials(sender.url, CREDENTIALS_TOKEN, session).kubeconfig(first["id"])
    stored = await store.get("credentials", first["id"])
    assert stored is not None
    assert not stored.body["sealed"]
    await asyncio.sleep(0.05)
    assert len(events) == 2


async def test_a_late_repeat_does_not_bring_erased_credentials_back(sender: Sender) -> None:
    _, first, _ = await sender.send(a_body())
    await sender.send(a_body(event="DELETED"), key="key-deleted")

    status, answer, _ = await sender.send(a_body())

    assert (status, answer["status"]) == (200, "DELETED")
    assert (await sender.read(f"/{first['id']}"))[0] == 404


async def test_a_rotation_does_not_bring_erased_credentials_back(sender: Sender, events: list[Message]) -> None:
    """CR-062: it may come after the cluster was deleted, or after an operator has erased them; a new CREATED does."""
    _, first, _ = await sender.send(a_body())
    await sender.read(f"/{first['id']}", method="DELETE")
    late = a_body(event="ROTATED", kubeconfig=a_kubeconfig("fresh"))
    for key in ("key-2", "key-3"):
        status, answer, _ = await sender.send(late, key=key)
        assert (status, answer) == (200, {**first, "status": "DELETED"})
    assert (await sender.read(f"/{first['id']}"))[0] == 404
    assert (await sender.send(a_body(), key="key-4"))[0] == 201
    await has(events, 3)
    assert [type(one) for one in events] == [CredentialsReceived, CredentialsDeleted, CredentialsReceived]


async def test_another_cluster_of_the_same_name_is_rejected_until_the_first_is_deleted(sender: Sender) -> None:
    await sender.send(a_body())
    status, problem, _ = await sender.send(a_body(uid="uid-2"), key="key-2")
    assert (status, problem["type"]) == (409, "cluster-name-taken")

    await sender.send(a_body(event="DELETED"), key="key-3")
    assert (await sender.send(a_body(uid="uid-2"), key="key-4"))[0] == 201


async def test_an_instance_that_awaits_nothing_is_refused(sender: Sender, events: list[Message]) -> None:
    """CR-074: an unknown one too, and whether it asks for a VIM or not."""
    stranger = "00000000-0000-4000-8000-000000000000"
    for body, instance in (
        (a_body(instance=stranger, register=False), stranger),
        (a_body() | {"vnfLcmOpOccId": "op"}, INSTANCE),
    ):
        status, problem, _ = await sender.send(body, instance=instance)
        assert (status, problem["type"]) == (409, "callback-not-awaited")
    assert (await sender.read())[1] == {"items": [], "next": None}
    assert not events


async def test_a_key_is_valid_only_for_its_own_instance(sender: Sender) -> None:
    status, problem, _ = await sender.send(a_body(instance="another"))
    assert (status, problem["type"]) == (403, "other-instance")


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"no JSON", 400, None),
        (b"[1]", 400, None),
        (b"{}", 422, "schemaVersion"),
        ({**a_body(), "event": "EXPLODED"}, 422, "event"),
        ({**a_body(), "cluster": {"name": "x"}}, 422, "cluster.uid"),
        ({**a_body(), "credentials": None}, 422, "credentials"),
        ({**a_body(), "credentials": {"format": "kubeconfig", "kubeconfig": "%%%"}}, 422, "credentials.kubeconfig"),
        (a_body(kubeconfig="a: 1"), 422, "credentials.kubeconfig.contexts"),
        ({**a_body(), "event": "DELETED"}, 422, "credentials"),
    ],
)
async def test_a_malformed_body_is_rejected_by_field(
    sender: Sender, events: list[Message], body: dict[str, Any] | bytes, status: int, field: str | None
) -> None:
    got, problem, _ = await sender.send(body)

    assert got == status
    assert "swordfish" not in json.dumps(problem)
    if field is not None:
        assert problem["invalidParams"][0]["name"] == field
    assert not events


async def test_unsigned_large_and_untyped_requests_are_rejected(sender: Sender) -> None:
    assert (await sender.send(b"x" * (callback.LARGEST_BODY + 1)))[0] == 413
    assert (await sender.send(a_body(), headers={"Content-Type": "text/plain"}))[0] == 415
    for key in ("", "x" * 257, "a b", "\udcff"):
        assert (await sender.send(a_body(), headers={"Idempotency-Key": key}))[0] == 400
    status, problem, headers = await sender.send(a_body(), headers={"X-Vnfm-Signature": "v1=" + "0" * 64})
    assert (status, problem["type"]) == (401, "not-signed")
    assert "Date" in headers


async def test_an_address_that_fails_too_often_must_wait_and_right_signatures_of_it_pass(sender: Sender) -> None:
    """CR-067."""
    for _ in range(5):
        assert (await sender.send(a_body(), headers={"X-Vnfm-Signature": "v1=00"}))[0] == 401
    status, _, headers = await sender.send(a_body(), headers={"X-Vnfm-Signature": "v1=00"})
    assert status == 429
    assert 1 <= int(headers["Retry-After"]) <= 61
    assert (await sender.send(a_body()))[0] == 201


async def test_unsigned_requests_store_nothing(sender: Sender, store: SqliteStore) -> None:
    await sender.send(a_body(), headers={"X-Vnfm-Signature": "v1=00"})
    assert await store.get("callback_nonces", f"{INSTANCE}:x") is None
    assert (await sender.read())[1] == {"items": [], "next": None}


async def test_a_page_of_metadata_shows_no_content(sender: Sender) -> None:
    """CR-071, CR-075."""
    for number in range(3):
        await sender.send(a_body(uid=f"uid-{number}", name=f"c{number}"), key=f"key-{number}")

    _, page = await sender.read("?limit=2")
    _, rest = await sender.read(f"?limit=2&after={page['next']}")
    _, none = await sender.read("?vnfInstanceId=another")

    assert (len(page["items"]), len(rest["items"]), rest["next"], none["items"]) == (2, 1, None, [])
    assert {item["cluster_name"] for item in page["items"] + rest["items"]} == {"c0", "c1", "c2"}
    assert "sealed" not in json.dumps(page)
    assert (await sender.read(f"/{page['items'][0]['id']}"))[1]["status"] == "STORED"
    for wrong in ("0", "-1", "²", "9" * 5000):
        assert (await sender.read(f"?limit={wrong}"))[0] == 400


async def test_an_operator_can_erase_credentials(sender: Sender, events: list[Message]) -> None:
    _, first, _ = await sender.send(a_body())

    assert (await sender.read(f"/{first['id']}", method="DELETE"))[0] == 204
    assert (await sender.read(f"/{first['id']}", method="DELETE"))[0] == 404
    await has(events, 2)
    assert isinstance(events[1], CredentialsDeleted)


async def test_call_backs_are_accepted_over_tls(bus: InProcessBus, store: SqliteStore, tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    async with (
        credentials_receiver(
            receiver_settings(tls_certificate=certificate, tls_key=key),
            Backends(bus, store, RING),
            awaiting=AwaitingLcm(),
        ) as service,
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(certificate)))
        ) as session,
    ):
        status, _, _ = await Sender(session, f"https://127.0.0.1:{service.port}").send(a_body())
        assert status == 201


def self_signed(folder: Path) -> tuple[Path, Path]:
    import datetime as dt
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "tls.crt", folder / "tls.key"
