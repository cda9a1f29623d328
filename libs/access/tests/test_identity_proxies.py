"""Identity servers behind the proxy of the environment."""

from __future__ import annotations

import pytest
from aiohttp import web
from kubevnfm_access.errors import IdentityUnavailable
from kubevnfm_access.identity_http import call
from kubevnfm_clients.session import internal_session, traced_session
from kubevnfm_kit.http import serving
from kubevnfm_kit.tls import ClientTls
from servers.connect_proxy import connect_proxy, environment
from servers.ports import free_port


async def keys(_: web.Request) -> web.Response:
    return web.json_response({"keys": []})


async def test_an_identity_server_is_asked_through_the_proxy_which_is_named_if_it_is_off() -> None:
    app, port = web.Application(), free_port()
    app.router.add_get("/keys", keys)
    async with serving(app, host="127.0.0.1", port=0) as at, connect_proxy() as proxy:
        url = f"http://issuer.example:{at}/keys"
        with environment(HTTP_PROXY=proxy.url):
            async with traced_session(ClientTls()) as session:
                assert (await call(session, "GET", url)).body == {"keys": []}
            async with internal_session(ClientTls()) as session:
                with pytest.raises(IdentityUnavailable, match="does not answer"):
                    await call(session, "GET", url)
        assert len(proxy.requests) == 1
        with environment(HTTP_PROXY=f"127.0.0.1:{port}"):
            async with traced_session(ClientTls()) as session:
                with pytest.raises(
                    IdentityUnavailable, match=f"is not reached: proxy 127.0.0.1:{port}: connection refused"
                ):
                    await call(session, "GET", url)
