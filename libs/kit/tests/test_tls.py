"""TLS of listeners and calls: accepted callers, versions, and certificates that are replaced at run time."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from kubevnfm_kit.http import serving
from kubevnfm_kit.tls import ClientTls, ServerTls, client_context, machine_cas
from patience import until
from servers.certificates import Authority, Pair


def app() -> web.Application:
    async def hello(_: web.Request) -> web.Response:
        return web.json_response({"hello": "you"})

    made = web.Application()
    made.add_routes([web.get("/", hello)])
    return made


async def get(port: int, context: ssl.SSLContext) -> int:
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(f"https://127.0.0.1:{port}/") as response,
    ):
        return response.status


async def shown(port: int, ca: Path) -> int:
    """Return the serial number of the certificate that the listener shows."""
    context = ssl.create_default_context(cafile=str(ca))
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    certificate = writer.get_extra_info("peercert")
    writer.close()
    return int(certificate["serialNumber"], 16)


def server(pair: Pair, ca: Authority | None = None, *, is_client_required: bool = True) -> ServerTls:
    return ServerTls(pair.certificate, pair.key, ca.file if ca else None, is_client_required)


async def test_who_trusts_the_authority_is_served(tmp_path: Path) -> None:
    ca = Authority(tmp_path)
    async with serving(app(), host="127.0.0.1", port=0, tls=server(ca.issue("server"))) as port:
        assert await get(port, ClientTls(ca.file).context()) == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await get(port, ClientTls(Authority(tmp_path, "other").file).context())


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_before_1_2_is_refused(tmp_path: Path) -> None:
    ca = Authority(tmp_path)
    old = ssl.create_default_context(cafile=str(ca.file))
    old.set_ciphers("DEFAULT@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.TLSv1
    async with serving(app(), host="127.0.0.1", port=0, tls=server(ca.issue("server"))) as port:
        assert await get(port, old) == 200  # the newest that both know
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(port, old)


async def test_who_calls_while_certificates_are_exchanged_is_served(tmp_path: Path) -> None:
    """MC-137."""
    ca = Authority(tmp_path)
    context = ClientTls(ca.file).context()
    pair = ca.issue("server")
    serials: set[int] = set()
    async with serving(app(), host="127.0.0.1", port=0, tls=server(pair), look_every_s=0.001) as port:
        is_over = False

        async def call() -> None:
            while not is_over:
                async with asyncio.timeout(300):
                    assert await get(port, context) == 200

        callers = [asyncio.create_task(call()) for _ in range(4)]
        while len(serials) < 20:
            ca.issue("server")
            serials.add(await shown(port, ca.file))
        is_over = True
        await asyncio.gather(*callers)


async def test_with_mutual_tls_only_the_authoritys_callers_are_served(tmp_path: Path) -> None:
    ca, other = Authority(tmp_path), Authority(tmp_path, "other")
    client, stranger = ca.issue("client"), other.issue("stranger")
    async with serving(app(), host="127.0.0.1", port=0, tls=server(ca.issue("server"), ca)) as port:
        assert await get(port, ClientTls(ca.file, client.certificate, client.key).context()) == 200
        for context in (
            ClientTls(ca.file).context(),
            ClientTls(ca.file, stranger.certificate, stranger.key).context(),
        ):
            with pytest.raises((aiohttp.ClientError, ssl.SSLError, ConnectionError)):
                await get(port, context)


async def test_a_callers_certificate_may_be_optional(tmp_path: Path) -> None:
    ca = Authority(tmp_path)
    tls = server(ca.issue("server"), ca, is_client_required=False)
    async with serving(app(), host="127.0.0.1", port=0, tls=tls) as port:
        assert await get(port, ClientTls(ca.file).context()) == 200


async def test_a_replaced_certificate_is_shown_without_a_restart(tmp_path: Path) -> None:
    ca = Authority(tmp_path)
    tls = server(ca.issue("server"))
    async with (
        serving(app(), host="127.0.0.1", port=0, tls=tls, look_every_s=0.02) as port,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ClientTls(ca.file).context())) as session,
    ):
        async with session.get(f"https://127.0.0.1:{port}/") as response:
            assert response.status == 200
        first = await shown(port, ca.file)
        for _ in range(2):  # the second time the listener is a copy already
            ca.issue("server")

            async def is_another(than: int = first) -> int | None:
                serial = await shown(port, ca.file)
                return serial if serial != than else None

            first = await until(is_another)
        async with session.get(f"https://127.0.0.1:{port}/") as response:  # on the connection from before
            assert response.status == 200


async def test_half_a_pair_changes_nothing_until_it_is_whole(tmp_path: Path) -> None:
    ca = Authority(tmp_path)
    pair = ca.issue("server")
    async with serving(app(), host="127.0.0.1", port=0, tls=server(pair), look_every_s=0.02) as port:
        first = await shown(port, ca.file)
        new = ca.issue("server", file="new")
        pair.certificate.write_bytes(new.certificate.read_bytes())
        for _ in range(5):
            assert await shown(port, ca.file) == first
        pair.key.write_bytes(new.key.read_bytes())

        async def is_another() -> bool | None:
            return await shown(port, ca.file) != first or None

        assert await until(is_another)


async def test_callers_of_an_authority_that_was_taken_out_are_refused(tmp_path: Path) -> None:
    ca, partner = Authority(tmp_path), Authority(tmp_path, "partner")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(partner.file.read_bytes())
    own = ca.issue("server")
    client = partner.issue("client")
    context = ClientTls(ca.file, client.certificate, client.key).context()
    tls = ServerTls(own.certificate, own.key, trusted)
    async with serving(app(), host="127.0.0.1", port=0, tls=tls, look_every_s=0.02) as port:
        assert await get(port, context) == 200
        trusted.write_bytes(ca.file.read_bytes())

        async def is_refused() -> bool | None:
            try:
                await get(port, context)
            except (aiohttp.ClientError, ConnectionError):
                return True
            return None

        assert await until(is_refused)


async def test_our_own_calls_show_a_replaced_certificate(tmp_path: Path) -> None:
    """MC-137."""
    ca, next_ca = Authority(tmp_path), Authority(tmp_path, "next")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(next_ca.file.read_bytes())
    own, client = ca.issue("server"), ca.issue("client")
    tls = ServerTls(own.certificate, own.key, trusted)
    calls = ClientTls(ca.file, client.certificate, client.key)
    async with (
        serving(app(), host="127.0.0.1", port=0, tls=tls) as port,
        client_context(calls, look_every_s=0.02) as context,
    ):
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await get(port, context)
        new = next_ca.issue("client", file="new")
        client.certificate.write_bytes(new.certificate.read_bytes())
        client.key.write_bytes(new.key.read_bytes())

        async def is_served() -> bool | None:
            try:
                return await get(port, context) == 200
            except (aiohttp.ClientError, ConnectionError):
                return None

        assert await until(is_served)


async def test_without_files_there_is_nothing_to_look_at() -> None:
    before = asyncio.all_tasks()
    async with client_context(ClientTls(), look_every_s=0.0):
        assert asyncio.all_tasks() == before


def test_calls_without_files_share_the_cas_of_the_machine(tmp_path: Path) -> None:
    """To read them takes 20 ms. A context that any file belongs to is its own."""
    ca = Authority(tmp_path, "one").file
    shared = ClientTls().context()
    assert shared is ClientTls().context()
    assert (shared.verify_mode, shared.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert shared.minimum_version == ssl.TLSVersion.TLSv1_2
    named = ClientTls(ca).context()
    assert named is not ClientTls(ca).context()
    assert ClientTls(ca, is_pinned=True).context() is not named
    assert len(named.get_ca_certs()) == 1


def test_the_cas_of_the_machine_are_read_from_its_file_or_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As OpenSSL finds them; a system has one of both, or none."""
    one, other = Authority(tmp_path, "one"), Authority(tmp_path, "other")
    folder = tmp_path / "certs"
    folder.mkdir()
    for number, ca in enumerate((one, other, one)):
        (folder / f"0a1b2c3d.{number}").symlink_to(ca.file)
    (folder / "README").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    monkeypatch.setenv("SSL_CERT_FILE", str(one.file))
    assert machine_cas() == one.file.read_text()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=machine_cas())
    assert len(context.get_ca_certs()) == 2
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "absent"))
    assert machine_cas() == ""
