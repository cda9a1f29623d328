"""The single process behind TLS and passwords: its user gets in, its parts still reach one another."""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from callers.users import basic, bearer
from kubevnfm import cli, keys
from kubevnfm.client import ClientSettings, GatewayClient, Refused
from kubevnfm.settings import Settings
from kubevnfm.single import single_node
from kubevnfm_access.passwords import PasswordHash
from kubevnfm_clients.callback import PATH as CALLBACK_PATH
from kubevnfm_clients.instances import HttpInstances
from kubevnfm_clients.session import internal_session
from kubevnfm_kit.errors import InvalidInput
from pydantic import SecretStr, ValidationError
from servers.certificates import Authority

PASSWORD = "of the operator"


def hashed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str) -> tuple[Any, str]:
    monkeypatch.setattr(sys, "argv", ["kubevnfm-hash-password"])
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    with pytest.raises(SystemExit) as ended:
        cli.hash_password()
    printed = capsys.readouterr()
    return ended.value.code, printed.out or printed.err


def test_a_password_is_hashed_for_the_users_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, first = hashed(monkeypatch, capsys, f"{PASSWORD}\n")
    assert code == 0
    assert PASSWORD not in first
    assert PasswordHash.parse(first.strip()).fits(PASSWORD)
    assert not PasswordHash.parse(first.strip()).fits(f"{PASSWORD} ")
    assert hashed(monkeypatch, capsys, f"{PASSWORD}\n")[1] != first
    assert hashed(monkeypatch, capsys, "\n") == (1, "kubevnfm: the password is empty\n")


async def test_user_and_parts_get_in_by_mutual_tls_and_strangers_do_not(tmp_path: Path) -> None:
    ca = Authority(tmp_path)
    server, own, client = ca.issue("server"), ca.issue("own"), ca.issue("client")
    users = tmp_path / "users.toml"
    users.write_text(f'[users.op]\nroles = ["operator"]\npassword = "{PasswordHash.from_password(PASSWORD)}"\n')
    settings = Settings(
        port=0,
        data_dir=tmp_path / "data",
        auth_modes=("basic",),
        auth_users_file=users,
        tls_certificate=server.certificate,
        tls_key=server.key,
        tls_client_ca=ca.file,
        internal_tls_certificate=own.certificate,
        internal_tls_key=own.key,
    )
    shown: Any = {"ca": ca.file, "certificate": client.certificate, "key": client.key}
    async with single_node(settings) as node:
        assert node.url.startswith("https://")
        async with GatewayClient(node.url, ClientSettings(user="op", password=SecretStr(PASSWORD), **shown)) as user:
            assert (await user.call("GET", "/vnflcm/v2/vnf_instances"))[0] == []
            assert (await user.call("GET", "/v1.0/vims"))[0] == {"vims": []}
            with pytest.raises(Refused, match="admin"):
                await user.call("POST", "/vnfpkgm/v1/vnf_packages", {})
        async with GatewayClient(node.url, ClientSettings(user="op", password=SecretStr("x"), **shown)) as stranger:
            with pytest.raises(Refused, match="401"):
                await stranger.call("GET", "/vnflcm/v2/vnf_instances")
        async with GatewayClient(node.url, ClientSettings(ca=ca.file)) as stranger:
            with pytest.raises((aiohttp.ClientError, ConnectionError)):
                await stranger.call("GET", "/health/live")
        token = await asyncio.to_thread(keys.internal_token, settings.data_dir)
        async with internal_session(settings.internal_tls) as session:
            assert await HttpInstances(node.url, token, session).running("unknown") is None
        await _the_receiver_admits_the_same_user(node.receiver_url, token)


async def _the_receiver_admits_the_same_user(url: str, internal_token: str) -> None:
    """CR-071, CR-075: by the modes of the gateway, and not by the token of the services."""
    async with aiohttp.ClientSession() as session:
        for headers, status in (
            (basic("op", PASSWORD), 200),
            (basic("op", "x"), 401),
            (bearer(internal_token), 401),
        ):
            async with session.get(f"{url}{CALLBACK_PATH}", headers=headers) as response:
                assert response.status == status
        async with session.get(f"{url}/internal/v1/credentials/any", headers=bearer(internal_token)) as response:
            assert response.status == 401


async def test_a_users_file_that_cannot_be_used_ends_the_start_with_its_place(tmp_path: Path) -> None:
    settings = Settings(port=0, data_dir=tmp_path, auth_modes=("basic",), auth_users_file=tmp_path / "none.toml")
    with pytest.raises(InvalidInput, match=r"none\.toml: FileNotFoundError"):
        async with single_node(settings):
            pass


def test_settings_that_would_lock_everybody_out_or_in_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="loopback"):
        Settings(host="0.0.0.0")
    file = tmp_path / "a.pem"
    with pytest.raises(ValidationError, match="internal_tls_certificate"):
        Settings(tls_certificate=file, tls_key=file, tls_client_ca=file)
    assert Settings(tls_certificate=file, tls_key=file, tls_client_ca=file, tls_client_required=False)
