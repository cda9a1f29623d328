"""Manifests from URLs: public addresses only, limited in size, and unchanged during an operation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml
from aiohttp import web
from kubevnfm_clients.outbound import AddressRules
from kubevnfm_infra_k8s.adapters.downloads import Downloads
from kubevnfm_infra_k8s.settings import Settings
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable
from kubevnfm_kit.http import serving
from kubevnfm_store.query import Query
from pydantic import SecretStr, ValidationError

Make = Callable[..., dict[str, Any]]
LOOPBACK = AddressRules.from_text("127.0.0.0/8")


@asynccontextmanager
async def a_web_server(pages: dict[str, Any]) -> AsyncIterator[str]:
    async def page(request: web.Request) -> web.StreamResponse:
        found = pages.get(request.path, 404)
        if isinstance(found, int):
            return web.Response(status=found)
        if isinstance(found, tuple):
            return web.Response(status=302, headers={"Location": found[0]})
        return web.Response(text=found)

    app = web.Application()
    app.router.add_get("/{path:.*}", page)
    async with serving(app, host="127.0.0.1", port=0) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "[::1]", "169.254.169.254", "2130706433", "0x7f000001", "[fec0::1]", "[64:ff9b::7f00:1]",
        "[::127.0.0.1]", "[2002:7f00:1::1]", "[::ffff:10.0.0.1]",
    ],
)  # fmt: skip
async def test_internal_addresses_are_not_fetched(host: str) -> None:
    async with Downloads.open(AddressRules()) as downloads:
        with pytest.raises((InvalidInput, OutsideUnavailable)) as caught:
            await downloads.text(f"http://{host}:1/x")
    # These two are names that cannot be resolved to some resolvers.
    if host not in ("2130706433", "0x7f000001"):
        assert "its address is in a network that calls may not go to (setting allowed_networks)" in str(caught.value)


async def test_a_redirect_to_an_internal_address_is_rejected_and_others_are_followed() -> None:
    pages = {"/a": ("/b",), "/b": "text", "/loop": ("/loop",), "/odd": ("file:///etc/passwd",)}
    async with a_web_server(pages) as url, Downloads.open(LOOPBACK) as downloads:
        assert await downloads.text(f"{url}/a") == "text"
        with pytest.raises(InvalidInput, match="redirects"):
            await downloads.text(f"{url}/loop")
        with pytest.raises(InvalidInput, match=r"an http\(s\) URL expected"):
            await downloads.text(f"{url}/odd")


@pytest.mark.parametrize(
    "target", ["https://[", "//[", "http://a..b/", f"http://{'a' * 64}/", "http://127.0.0.1:99999/"]
)
async def test_a_target_that_is_no_url_is_refused(target: str) -> None:
    async with a_web_server({"/a": (target,)}) as url, Downloads.open(LOOPBACK) as downloads:
        for asked in (f"{url}/a", target):
            with pytest.raises(InvalidInput, match=r"http\(s\) URL"):
                await downloads.text(asked)


async def test_errors_of_downloads_do_not_show_secrets() -> None:
    pages = {"/large": "x" * (10 * 2**20 + 1), "/down": 503, "/binary": "ok"}
    async with a_web_server(pages) as url, Downloads.open(LOOPBACK) as downloads:
        with pytest.raises(InvalidInput, match="10 MiB"):
            await downloads.text(f"{url}/large")
        with pytest.raises(InvalidInput, match="HTTP 404") as caught:
            await downloads.text(f"{url.replace('://', '://user:hunter2@')}/none?token=hunter2")
        assert "hunter2" not in str(caught.value)
        with pytest.raises(OutsideUnavailable, match="503"):
            await downloads.text(f"{url}/down")
    async with Downloads.open(LOOPBACK) as downloads:
        with pytest.raises(OutsideUnavailable, match="cannot be reached"):
            await downloads.text(f"{url}/gone")


async def test_an_operation_applies_the_same_bytes_at_each_attempt(site: Any, make: Make) -> None:
    """CR-008."""
    pages = {"/f.yaml": yaml.safe_dump(make("Secret", "s", stringData={"k": "hunter2"}))}
    async with a_web_server(pages) as url:
        first = await site.apply({}, def_files=[f"{url}/f.yaml"])
        pages["/f.yaml"] = yaml.safe_dump(make("ConfigMap", "c"))
        again = await site.apply({}, def_files=[f"{url}/f.yaml"], attempt=2)
        assert again == first
        stored = await site.store.find("k8s_fetched_files", Query())
        assert len(stored) == 1
        assert "hunter2" not in str(stored[0].body)
        await site.delete()
        assert await site.store.find("k8s_fetched_files", Query()) == []


def test_the_former_setting_names_the_one_that_replaced_it() -> None:
    with pytest.raises(ValidationError, match="fetch_inner_addresses: replaced by allowed_networks"):
        Settings(internal_token=SecretStr("t"), keys=SecretStr("k"), fetch_inner_addresses=True)
