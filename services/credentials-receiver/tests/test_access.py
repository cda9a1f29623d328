"""The callers of the receiver: operators by their roles, senders by their signature, vim-registry by a token of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from callers.users import HASHED, PASSWORD, basic, bearer, users_file
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_clients import callback
from kubevnfm_clients.http import OtherServiceError
from kubevnfm_clients.logs import HttpCredentials
from kubevnfm_credentials_receiver.settings import Settings
from kubevnfm_credentials_receiver.wiring import credentials_receiver
from kubevnfm_kit.clock import SystemClock
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.tls import ClientTls
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from pydantic import SecretStr, ValidationError
from servers.certificates import Authority, Pair
from worlds.receiver_twins import CREDENTIALS_TOKEN, INSTANCE, MASTER, TOKEN, AwaitingLcm, a_body, receiver_settings

RING = KeyRing.from_text(KeyRing.new_key())


class Client:
    """Calls of a receiver."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self.url = session, url

    async def call(self, method: str, path: str = "", **more: Any) -> tuple[int, Any, Any]:
        """Return status, JSON and headers."""
        url = f"{self.url}{path if path.startswith('/internal') or path == '/metrics' else callback.PATH + path}"
        async with self.session.request(method, url, **more) as response:
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else None, response.headers

    async def send(self, *, key: str = "key-1", **changes: Any) -> tuple[int, Any, Any]:
        """Send a signed call-back, as a workload cluster's sender does."""
        raw = json.dumps(a_body(**changes)).encode()
        headers = callback.signed_headers(
            callback.instance_key(MASTER, INSTANCE),
            raw,
            vnf_instance_id=INSTANCE,
            timestamp=int(SystemClock().now().timestamp()),
            nonce=f"{'n' * 22}-{key}",
            idempotency_key=key,
        )
        return await self.call("POST", data=raw, headers=headers)


@asynccontextmanager
async def receiver(folder: Path, tls: ClientTls | None = None, **changes: Any) -> AsyncIterator[Client]:
    connector = aiohttp.TCPConnector(ssl=tls.context()) if tls else None
    async with (
        InProcessBus(RING) as bus,
        SqliteStore.open(folder / "store.db") as store,
        aiohttp.ClientSession(connector=connector) as session,
        credentials_receiver(
            receiver_settings(**changes), Backends(bus, store, RING), awaiting=AwaitingLcm()
        ) as service,
    ):
        yield Client(session, f"{'https' if tls else 'http'}://127.0.0.1:{service.port}")


async def test_roles_are_those_of_the_gateway(tmp_path: Path) -> None:
    """CR-075: readers read, operators and admins also erase; a caller without credentials does neither."""
    users = users_file(tmp_path, r=["reader"], o=["operator"], a=["admin"], none=[])
    async with receiver(tmp_path, auth_modes="basic", auth_users_file=users) as client:
        for number, name in enumerate(("o", "a")):
            cluster = f"c{number}"
            _, receipt, _ = await client.send(key=f"key-{number}", uid=cluster, name=cluster)
            one = f"/{receipt['id']}"
            for path in ("", one):
                assert [
                    (await client.call("GET", path, headers=headers))[0]
                    for headers in ({}, basic("r", "wrong"), basic("none"), basic("r"), basic("o"), basic("a"))
                ] == [401, 401, 403, 200, 200, 200]
            assert (await client.call("DELETE", one))[0] == 401
            status, problem, _ = await client.call("DELETE", one, headers=basic("r"))
            assert (status, "operator" in problem["detail"]) == (403, True)
            assert (await client.call("DELETE", one, headers=basic(name)))[0] == 204
            assert (await client.call("GET", one, headers=basic("r")))[0] == 404
        status, problem, headers = await client.call("GET")
        assert (status, problem["type"]) == (401, "unauthenticated")
        assert headers["WWW-Authenticate"] == 'Basic realm="kubevnfm", charset="UTF-8"'


async def test_tokens_of_services_open_nothing_for_operators_and_operators_no_content(tmp_path: Path) -> None:
    """CR-071: vim-registry's token alone opens a kubeconfig, and nothing else."""
    users = users_file(tmp_path, a=["admin"])
    async with receiver(tmp_path, auth_modes="basic", auth_users_file=users) as client:
        _, receipt, _ = await client.send()
        content = f"/internal/v1/credentials/{receipt['id']}"
        for headers in ({}, bearer(TOKEN), basic("a"), bearer("wrong")):
            status, problem, _ = await client.call("GET", content, headers=headers)
            assert (status, problem["detail"]) == (401, "the credentials token is required")
        with pytest.raises(OtherServiceError, match="credentials token"):
            await HttpCredentials(client.url, TOKEN, client.session).kubeconfig(receipt["id"])
        kubeconfig = await HttpCredentials(client.url, CREDENTIALS_TOKEN, client.session).kubeconfig(receipt["id"])
        assert "swordfish" in kubeconfig.reveal(RING)
        for token in (TOKEN, CREDENTIALS_TOKEN):
            for method, path in (("GET", ""), ("DELETE", f"/{receipt['id']}")):
                assert (await client.call(method, path, headers=bearer(token)))[0] == 401


async def test_senders_and_probes_need_no_user(tmp_path: Path) -> None:
    """CR-075: a call-back is signed; neither the modes of operators nor the names of the receiver apply to it."""
    users = users_file(tmp_path, r=["reader"])
    async with receiver(tmp_path, auth_modes="basic", auth_users_file=users) as client:
        assert (await client.send())[0] == 201
        assert (await client.call("GET", "/metrics"))[0] == 200
    (tmp_path / "open").mkdir()
    async with receiver(tmp_path / "open") as client:
        raw = json.dumps(a_body()).encode()
        other = {"Host": "receiver.example", "Origin": "https://elsewhere.example"}
        status, problem, _ = await client.call("POST", data=raw, headers={**other, "Content-Type": "application/json"})
        assert (status, problem["type"]) == (401, "not-signed")
        # Without authentication the receiver is guarded from pages in a browser as the gateway is.
        assert (await client.call("GET", headers={"Host": "receiver.example"}))[0] == 421
        assert (await client.call("DELETE", "/x", headers={"Origin": "https://elsewhere.example"}))[0] == 403
        assert (await client.call("GET"))[0] == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "receiver.example", ""])
def test_without_authentication_only_loopback_is_served(host: str) -> None:
    """CR-075: as the gateway."""
    with pytest.raises(ValidationError, match="loopback"):
        receiver_settings(host=host)
    assert receiver_settings(host=host, auth_modes="basic", auth_users_file="u").host == host


async def test_a_users_file_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.toml: FileNotFoundError"):
        async with receiver(tmp_path, auth_modes="basic", auth_users_file=tmp_path / "none.toml"):
            pass


@pytest.mark.parametrize("peers", [{}, {"lcm-api": SecretStr("of lcm-api")}])
def test_the_token_for_kubeconfigs_is_no_other_token(peers: dict[str, SecretStr]) -> None:
    """CR-071."""
    given = {"keys": SecretStr("k"), "master_keys": SecretStr("m"), "peer_tokens": peers}
    for taken in ("own", *(one.get_secret_value() for one in peers.values())):
        with pytest.raises(ValidationError, match="a token of its own") as refused:
            Settings(internal_token=SecretStr("own"), credentials_token=SecretStr(taken), **given)  # type: ignore[arg-type]  # keyword by keyword
        assert "of lcm-api" not in str(refused.value)
    with pytest.raises(ValidationError, match="at least 1"):
        Settings(internal_token=SecretStr("own"), credentials_token=SecretStr(""), **given)  # type: ignore[arg-type]  # as above


async def test_a_certificate_is_a_user_and_senders_need_none(tmp_path: Path) -> None:
    """CR-068, CR-075: with `tls_client_required = false` the same listener serves both."""
    ca = Authority(tmp_path)
    server, user = ca.issue("server"), ca.issue("reader", dns="r.example")
    users = users_file(tmp_path, r=["reader"])
    modes: dict[str, Any] = {"auth_modes": "certificate", "auth_users_file": users, "tls_client_required": False}
    files = {"tls_certificate": server.certificate, "tls_key": server.key, "tls_client_ca": ca.file}

    def presenting(pair: Pair | None) -> ClientTls:
        return ClientTls(ca.file, pair.certificate if pair else None, pair.key if pair else None)

    for folder, pair, status in (("with", user, 200), ("without", None, 401)):
        (tmp_path / folder).mkdir()
        async with receiver(tmp_path / folder, presenting(pair), **modes, **files) as client:
            assert (await client.send())[0] == 201
            assert (await client.call("GET"))[0] == status


async def test_erasing_is_written_down_and_guessing_is_slowed_down(tmp_path: Path) -> None:
    """CR-075: the audit log and the limits are those of the gateway."""
    users = users_file(tmp_path, o=["operator"], r=["reader"])
    limits: dict[str, Any] = {"auth_tries_burst": 2, "auth_tries_per_min": 0.1}
    async with receiver(tmp_path, auth_modes="basic", auth_users_file=users, **limits) as client:
        with structlog.testing.capture_logs() as logs:
            one = f"/{(await client.send())[1]['id']}"
            for name in ("r", "o"):
                await client.call("DELETE", one, headers=basic(name))
            await client.call("DELETE", one)
        audit = [line for line in logs if line["event"] == "audit"]
        assert [(line["subject"], line["method"], line["path"], line["status"]) for line in audit] == [
            ("r", "DELETE", callback.PATH + one, 403),
            ("o", "DELETE", callback.PATH + one, 204),
            (None, "DELETE", callback.PATH + one, 401),
        ]
        for secret in (PASSWORD, HASHED, basic("o")["Authorization"].split()[1]):
            assert secret not in repr(logs)
        for _ in range(2):
            assert (await client.call("GET", headers=basic("r", "guess")))[0] == 401
        status, _, headers = await client.call("GET", headers=basic("r", "guess"))
        assert status == 429
        assert int(headers["Retry-After"]) >= 1


async def test_failures_are_counted_by_the_sender_behind_a_trusted_proxy(tmp_path: Path) -> None:
    """CR-067."""
    async with receiver(tmp_path, failures_a_minute=2, trusted_proxies="127.0.0.0/8") as client:
        bad = {"Content-Type": "application/json", callback.SIGNATURE: "v1=00"}
        for sender, statuses in (("198.51.100.7", [401, 401, 429]), ("198.51.100.8", [401])):
            headers = {**bad, "X-Forwarded-For": sender}
            assert [(await client.call("POST", data=b"{}", headers=headers))[0] for _ in statuses] == statuses
