"""The login at the gateway: Basic, tokens, Keystone by clouds.yaml; secrets stay where they are."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from pathlib import Path

import pytest
from callers.command_line import Ran, kubevnfm, run_here
from callers.users import PASSWORD, users_file
from clouds.openstack_stand import standing
from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.proxies import proxy_of
from kubevnfm_lab.openstack.settings import CloudSettings
from servers.certificates import Authority
from servers.connect_proxy import connect_proxy
from worlds.lcm_world import lcm_world

CLOUDS = """
clouds:
  lab: {auth: {auth_url: URL, username: nfv, password: nfv, project_name: nfv, user_domain_name: Default, project_domain_name: Default}}
  wrong: {auth: {auth_url: URL, username: nfv, password: s3cret, project_name: nfv}}
  empty: {}
"""


async def ran(folder: Path, url: str, context: str, **environment: str) -> Ran:
    """Run a command with a context of a configuration file for the gateway."""
    path = folder / "kubevnfm" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'current = "here"\n[contexts.here]\nurl = "{url}"\n{context}\n')
    given = {"XDG_CONFIG_HOME": str(folder), "HOME": os.devnull, "KUBEVNFM_URL": "", **environment}
    return await kubevnfm("", "get", "vnf", environment=given)


async def test_each_way_to_authenticate_and_the_refusal_of_the_wrong(tmp_path: Path) -> None:
    secret = tmp_path / "kubevnfm" / "ada.password"
    secret.parent.mkdir()
    secret.write_text(f"{PASSWORD}\n")
    secret.chmod(0o600)
    async with (
        standing(CloudSettings()) as stand,
        lcm_world(
            tmp_path,
            auth_modes="basic,keystone",
            auth_users_file=users_file(tmp_path, ada=["reader"], bob=[]),
            auth_keystone_url=stand.auth_url,
            auth_keystone_username="nfv",
            auth_keystone_password="nfv",
            auth_keystone_project="nfv",
            auth_keystone_projects="*",
            auth_roles="member=reader",
        ) as world,
    ):
        clouds = tmp_path / "kubevnfm" / "clouds.yaml"
        clouds.write_text(CLOUDS.replace("URL", stand.auth_url))
        for context, environment, code, said in [
            ('user = "ada"\npassword_file = "ada.password"', {}, 0, "nothing found"),
            ('user = "ada"\npassword_env = "WORD"', {"WORD": PASSWORD}, 0, "nothing found"),
            ('user = "ada"\npassword_env = "WORD"', {"WORD": "s3cret"}, 4, "401: "),
            ('user = "ada"\npassword_env = "WORD"', {}, 2, "variable WORD is not set"),
            ('user = "bob"\npassword_file = "ada.password"', {}, 4, "403: "),
            ("", {}, 4, "401: "),
            ("", {"KUBEVNFM_CLIENT_USER": "ada", "KUBEVNFM_CLIENT_PASSWORD": PASSWORD}, 0, "nothing found"),
            ('token_env = "WORD"', {"WORD": "s3cret"}, 4, "401: "),
            ('token_env = "WORD"', {"WORD": "s3cret\r\nX: y"}, 2, "no header can have"),
            ('cloud = "lab"\nclouds_file = "clouds.yaml"', {}, 0, "nothing found"),
            ('cloud = "lab"', {"OS_CLIENT_CONFIG_FILE": str(clouds)}, 0, "nothing found"),
            ('cloud = "wrong"\nclouds_file = "clouds.yaml"', {}, 4, "Keystone of cloud wrong gives no token: 401"),
            ('cloud = "empty"\nclouds_file = "clouds.yaml"', {}, 2, "cloud empty with auth expected"),
        ]:
            ended = await ran(tmp_path, world.url, context, **environment)
            assert (ended.code, said in ended.err) == (code, True), (context, ended)
            assert "s3cret" not in ended.err + ended.out
            assert PASSWORD not in ended.err + ended.out


@pytest.mark.parametrize(
    "url", ["ftp://host", "http://", "http://user:s3cret@host", "http://host:port", "https://h/?a=b"]
)
def test_a_url_that_is_none_is_wrong_usage_and_shows_no_login(url: str) -> None:
    ended = run_here("get", "vnf", "--url", url)
    assert (ended.code, ended.out) == (2, "")
    assert "s3cret" not in ended.err


async def test_a_proxy_is_asked_with_its_own_login_and_a_certificate_is_verified_unless_asked_not_to(
    tmp_path: Path,
) -> None:
    heads: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        body = b'{"sequence": "a", "items": []}'
        status = "407 Wanted" if "s3cret" in heads[-1] or heads[-1].startswith("CONNECT") else "200 OK"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        writer.close()

    authority = Authority(tmp_path)
    pair = authority.issue("gateway")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    login = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
    as_ada = 'proxy_user = "ada"\nproxy_password_env = "WORD"'
    async with (
        connect_proxy() as proxy,
        await asyncio.start_server(answer, "127.0.0.1", ssl=tls) as gateway,
        await asyncio.start_server(answer, "127.0.0.1") as forwarding,
    ):
        url = f"https://127.0.0.1:{gateway.sockets[0].getsockname()[1]}"
        tunnel, forward = f"http://127.0.0.1:{proxy.port}", f"127.0.0.1:{forwarding.sockets[0].getsockname()[1]}"
        for place, context, environment, code, said in [
            (url, 'proxy = "none"', {"https_proxy": forward}, 7, "its certificate is not trusted"),
            (url, f'proxy = "{tunnel}"\nca = "{authority.file}"\n{as_ada}', {"WORD": PASSWORD}, 0, "nothing found"),
            (url, f'proxy = "{tunnel}"\n{as_ada}', {"WORD": PASSWORD}, 7, "its certificate is not trusted"),
            (url, f'proxy = "{tunnel}"\ninsecure_skip_tls_verify = true', {}, 0, "is not checked"),
            (url, f'proxy = "{forward}"', {}, 7, "does not connect to 127.0.0.1"),
            ("http://gateway.example:1", f'proxy = "{forward}"\n{as_ada}', {"WORD": PASSWORD}, 0, "nothing found"),
            ("http://gateway.example", "", {"HTTP_PROXY": f"ada:{PASSWORD}@{forward}"}, 0, "nothing found"),
            ("http://gateway.example/s3cret", f'proxy = "{forward}"', {}, 7, "wants a login"),
            (url, 'proxy = "http://ada:word@host"', {}, 2, "a login is not part of this file"),
            (url, 'proxy = "socks5://host"', {}, 2, "proxies of other kinds (socks5) are not used"),
            (url, 'insecure_skip_tls_verify = "yes"', {}, 2, "true or false expected"),
        ]:
            heads.clear()
            proxy.requests.clear()
            ended = await ran(tmp_path, place, context, **environment)
            assert (ended.code, said in ended.err) == (code, True), (context, ended)
            assert PASSWORD not in ended.err + ended.out
            if tunnel in context:
                expected = f"basic {login}".lower() if as_ada in context else ""
                assert proxy.requests == [(url.removeprefix("https://"), expected)]
            if code == 0 and place != url:
                assert heads[0].startswith(f"GET {place}/kubevnfm/v1/instances?")
            assert (login in "".join(heads)) is (code == 0 and place != url), "the gateway gets no login of the proxy"


@pytest.mark.parametrize(
    ("url", "exceptions", "is_direct"),
    [
        ("https://gw.example:9890", "", False),
        ("https://gw.example:9890", "*", True),
        ("https://gw.example:9890", "other.example, .example", True),
        ("https://gw.example:9890", "ample,w.example", False),
        ("https://gw.example:9890", "gw.example:9890", True),
        ("https://gw.example:9890", "gw.example:443", False),
        ("https://10.1.2.3", "10.1.0.0/16", True),
        ("https://10.1.2.3", "10.2.0.0/16,10.1.2.30,2.3", False),
        ("https://[fd00::7]:9890", "fd00::/8", True),
        ("https://[fd00::7]:9890", "[fd00::7]:9890", True),
        ("https://127.3.2.1:9890", "", True),
        ("http://LOCALHOST", "", True),
        ("http://[::1]:80", "", True),
    ],
)
def test_no_proxy_leaves_servers_out(url: str, exceptions: str, *, is_direct: bool) -> None:
    environment = {"HTTP_PROXY": "p:3128", "https_proxy": "http://p:3128/", "NO_PROXY": exceptions}
    assert (proxy_of(url, named=None, login=None, environment=environment) is None) is is_direct


@pytest.mark.parametrize("text", ["https://p:3128", "http://", "http://p:port", "http://p/path", "http://u:s3cret@p:x"])
def test_a_proxy_that_is_none_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageFault) as refused:
        proxy_of("http://gw.example", named=None, login=None, environment={"http_proxy": text})
    assert "s3cret" not in str(refused.value)
