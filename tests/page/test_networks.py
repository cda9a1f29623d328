"""The views of networks, of what VNFs share, of subscriptions and of the services, on a real gateway and the lab."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from callers.browser import Client, Tab
from clouds.lab_process import LabControl
from clusters.kubeconfigs import admin_kubeconfig
from clusters.masters import kubectl
from patience import until_true
from servers.installations import Installation
from servers.subscriber import Subscriber
from worlds.link_world import definition

if TYPE_CHECKING:
    from playwright.async_api import Route

_DEFINITION: Final = json.dumps(
    definition("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "Namespaced")
)

pytestmark = [pytest.mark.page, pytest.mark.asyncio(loop_scope="session")]


async def test_networks_and_what_vnfs_share_are_shown_and_a_link_in_use_is_not_deleted(
    tab: Tab, client: Client, faults: LabControl
) -> None:
    """A cluster with its network, and as a region with a link and a volume."""
    page, name = tab.page, "wired <img src=x onerror=alert(1)>"
    cluster = await client.create(await client.sample("cluster"), vnfInstanceName=name)
    await client.do(cluster, "instantiate", client.cluster())
    encoded = await admin_kubeconfig(client, faults, cluster)
    wanted = {"cloud_owner": "op", "cloud_region": "edge", "kubeconfig": encoded}
    (await client.call("POST", "/multicloud/v1/cloud-regions", wanted)).must(201)
    master = await faults.master_of(cluster)
    await kubectl(client.installation.lab, master, f"apply -f - <<'END'\n{_DEFINITION}\nEND")
    link = {
        "cloud_region_id": "op/edge", "name": "protected", "type": "nad", "namespaces": ["default"],
        "spec": {"macvlan": {"master": "eth1", "mode": "bridge"}},
    }  # fmt: skip
    for user in ("so", "other"):
        made = (await client.call("POST", "/multicloud/v1/virtual-links", {**link, "reference": user})).json
    volume = {
        "cloud_region_id": "op/edge", "name": "data", "size": "1Gi", "access_modes": ["ReadWriteOnce"],
        "source": {"nfs": {"server": "192.0.2.9", "path": "/data"}},
    }  # fmt: skip
    (await client.call("POST", "/multicloud/v1/persistent-volumes", volume)).must(201)

    await tab.log_in("anna", f"/ui/instances/{cluster}")
    await page.locator("main").get_by_role("link", name="Topology").click()
    drawing = page.get_by_role("group", name="Networks and what is on them")
    await drawing.get_by_role("link", name=name).wait_for()
    view = (await client.call("GET", f"/kubevnfm/v1/topology?instance={cluster}")).must(200).json
    addresses = {one for each in view["nodes"] if each["kind"] == "connection-point" for one in each["addresses"]}
    assert addresses
    for address in addresses:
        assert await drawing.get_by_role("cell").filter(has_text=address).count(), address
    await tab.picture("topology")
    await tab.faultless()
    await page.get_by_label("As a list").check()
    for address in addresses:
        await page.get_by_role("row").filter(has_text=address).first.wait_for()
    await tab.faultless()
    await page.get_by_label("As a list").uncheck()
    await _thousands_stay_usable(tab, cluster, view)
    await page.goto(f"{tab.url}/ui/topology")
    await page.get_by_role("combobox", name="VIM", exact=True).select_option(label="op/edge")
    await page.get_by_role("columnheader", name="protected").wait_for()
    await tab.faultless()

    await page.locator("summary", has_text="More").click()
    await tab.faultless()
    await page.get_by_role("link", name="Links", exact=True).click()
    await page.get_by_role("row").filter(has_text="protected").filter(has_text="other").wait_for()
    await tab.picture("links")
    await tab.faultless()
    await page.get_by_role("link", name="protected").click()
    await page.get_by_text("NetworkAttachmentDefinition").wait_for()
    await tab.faultless()
    await page.get_by_role("button", name="Delete …").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_text("It has 2 users").wait_for()
    await dialog.get_by_role("button", name="Delete").click()
    await dialog.get_by_role("alert").wait_for()
    await tab.faultless()
    await page.keyboard.press("Escape")
    (await client.call("DELETE", f"/multicloud/v1/virtual-links/{made['id']}?reference=other")).must(200)
    await page.get_by_role("button", name="Delete …").click()
    await dialog.get_by_role("button", name="Delete").click()
    await page.get_by_text("There is no virtual link").wait_for()

    await _a_volume_and_its_region_are_left(tab, encoded)
    await client.terminate(cluster)


async def _a_volume_and_its_region_are_left(tab: Tab, encoded: str) -> None:
    """A region is refused while something is in it."""
    page = tab.page
    dialog = page.get_by_role("dialog")
    await page.locator("summary", has_text="More").click()
    await page.get_by_role("link", name="Volumes", exact=True).click()
    await page.get_by_role("link", name="data", exact=True).click()
    await page.get_by_text("its data are kept", exact=True).wait_for()
    await tab.faultless()
    await page.get_by_role("link", name="op/edge").click()
    await page.get_by_role("heading", name="op/edge").wait_for()
    await page.reload()
    await page.get_by_role("heading", name="op/edge").wait_for()
    await tab.picture("region")
    await tab.faultless()
    field = page.get_by_label("Other access data")
    await field.set_input_files({"name": "bad", "mimeType": "text/plain", "buffer": b"no kubeconfig"})
    await page.get_by_role("alert").wait_for()
    right = {"name": "kubeconfig", "mimeType": "text/plain", "buffer": base64.b64decode(encoded)}
    await field.set_input_files(right)
    await page.get_by_text("The cluster has answered with this access data").wait_for()
    await page.get_by_role("button", name="Delete …").click()
    await dialog.get_by_role("button", name="Delete").click()
    await dialog.get_by_role("alert").wait_for()
    await page.keyboard.press("Escape")
    await page.get_by_role("link", name="Persistent volumes").click()
    await page.get_by_role("link", name="data", exact=True).click()
    await page.get_by_role("button", name="Delete …").click()
    await dialog.get_by_role("button", name="Delete").click()
    await page.get_by_text("its data are kept: nfs 192.0.2.9:/data").wait_for()
    await page.goto(f"{tab.url}/ui/regions")
    await page.get_by_role("link", name="op/edge").click()
    await page.get_by_role("button", name="Delete …").click()
    await dialog.get_by_role("button", name="Delete").click()
    await page.get_by_text("No cloud region is registered").wait_for()

    # The same cluster as a VIM, from the same file.
    await page.goto(f"{tab.url}/ui/vims/new")
    field = page.get_by_label("its kubeconfig fills in the form")
    await field.set_input_files({"name": "bad", "mimeType": "text/plain", "buffer": b"no kubeconfig"})
    await page.get_by_role("alert").filter(has_text="kubeconfig").wait_for()
    await field.set_input_files(right)
    address = page.get_by_label("Auth URL, required")

    async def is_filled_in() -> bool:
        return bool(await address.input_value())

    await until_true(is_filled_in, pause_s=0.05)
    wanted, given = await address.input_value(), page.get_by_label("Name, required", exact=True).first
    await given.fill("lab")
    await page.get_by_role("button", name="Register").click()
    await page.get_by_role("alert").filter(has_text="named lab").wait_for()
    await given.fill("by file")
    await page.get_by_role("button", name="Register").click()
    await page.get_by_role("heading", name="by file").wait_for()
    await page.get_by_text(wanted).wait_for()
    await page.get_by_text("nodes ready").wait_for()
    await page.get_by_role("button", name="Delete …").click()
    await dialog.get_by_role("button", name="Delete").click()
    await page.get_by_role("heading", name="VIMs", exact=True).wait_for()


async def _thousands_stay_usable(tab: Tab, cluster: str, view: dict[str, Any]) -> None:
    """The gateway's answer, made large: 500 nodes are a drawing, 2,000 with many networks a list; what is missing is said."""
    page, path = tab.page, "**/kubevnfm/v1/topology?*"
    vnf = next(each for each in view["nodes"] if each["kind"] == "vnf")

    def large(machines: int, networks: int) -> dict[str, Any]:
        edges = list[dict[str, str]]()
        buses = (
            {"id": f"network:{at}", "kind": "network", "name": f"net-{at}", "health": "ok"} for at in range(networks)
        )
        nodes: list[dict[str, Any]] = [vnf, *buses]
        for at in range(machines):
            bad = {"health": "problem", "text": "it is gone"} if at == machines - 1 else {"health": "ok"}
            nodes.append({"id": f"machine:{at}", "kind": "machine", "name": f"machine-{at}", **bad})
            point = {"id": f"cp:{at}", "kind": "connection-point", "name": "p", "addresses": [f"10.0.{at}.1"]}
            nodes.append({**point, "health": "ok"})
            edges.append({"source": vnf["id"], "target": f"machine:{at}", "kind": "has"})
            edges.append({"source": f"machine:{at}", "target": f"cp:{at}", "kind": "has"})
            edges.append({"source": f"cp:{at}", "target": f"network:{at % networks}", "kind": "connects"})
        away = [{"part": "pods", "text": "infra-k8s does not answer"}]
        return {**view, "nodes": nodes, "edges": edges, "truncated": True, "away": away}

    await page.route(path, partial(_answer, large(230, 20)))
    await page.goto(f"{tab.url}/ui/topology?instance={cluster}")
    await page.get_by_text("There is more than is shown.").wait_for()
    await page.get_by_text("pods could not be read: infra-k8s does not answer").wait_for()
    first = page.get_by_role("group", name="Networks and what is on them").get_by_role("rowheader").nth(1)
    assert "machine-229" in await first.inner_text(), "what has a problem is first"
    drawn_ms = await page.evaluate(
        """async () => {
            const frame = document.querySelector('.frame'), times = [];
            for (let at = 0; at < 40; at++) {
                const began = performance.now();
                frame.scrollTop += 100;
                await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                times.push(performance.now() - began);
            }
            return times.sort((one, other) => one - other)[30];
        }"""
    )
    assert drawn_ms < 100, f"a frame of 500 nodes takes {drawn_ms:.0f} ms"
    await page.unroute_all(behavior="wait")
    await page.route(path, partial(_answer, large(900, 100)))
    await page.reload()
    await page.get_by_text("This is too much for a drawing").wait_for()
    await page.get_by_role("button", name="Show more").wait_for()
    await page.get_by_role("combobox", name="Network", exact=True).select_option(label="net-7")
    await page.get_by_role("group", name="Networks and what is on them").get_by_text("10.0.7.1").wait_for()
    await page.unroute_all(behavior="wait")


async def _answer(body: object, route: Route) -> None:
    await route.fulfill(json=body)


async def test_a_subscription_is_made_seen_failing_and_deleted(tab: Tab, client: Client) -> None:
    """And a reader sees it, and may not change it."""
    page = tab.page
    async with Subscriber.listening() as subscriber:
        await tab.log_in("anna", "/ui/subscriptions")
        await page.get_by_text("There is no subscription.").wait_for()
        await page.locator("summary", has_text="New subscription").click()
        await page.get_by_label("Address of the subscriber").fill(f"{subscriber.uri}?token=marked-in-query")
        subscriber.tests = 200
        await page.get_by_role("button", name="Subscribe").click()
        await page.get_by_role("alert").filter(has_text="GET should answer 204").wait_for()
        await tab.faultless()
        subscriber.tests = 204
        await page.get_by_role("button", name="Subscribe").click()
        await page.get_by_role("heading", name="Subscription of").wait_for()
        assert "marked-in-query" not in await page.inner_text("body")
        await page.get_by_text("all delivered").wait_for()
        subscriber.refuses, subscriber.retry_after = 1000, "600"
        made = await client.create(await client.sample("cluster"))
        await page.locator(".error").filter(has_text="it answered 503").wait_for()
        await tab.faultless()
    await page.locator("summary", has_text="More").click()
    await page.get_by_role("link", name="Subscriptions", exact=True).click()
    await page.get_by_label("Only those that are not accepted").check()
    await page.get_by_role("row").filter(has_text="not accepted, tried again").wait_for()
    await tab.picture("subscriptions")
    await tab.faultless()
    address = page.url
    await page.get_by_role("button", name="Log out").click()
    await page.get_by_text("You have logged out.").wait_for()
    await tab.log_in("rita", address.removeprefix(tab.url))
    await page.get_by_role("row").filter(has_text="not accepted, tried again").get_by_role("link").click()
    await page.get_by_text("Deleting it needs the role operator.").wait_for()
    assert await page.get_by_role("button", name="Delete").count() == 0
    await page.get_by_role("button", name="Log out").click()
    await page.get_by_text("You have logged out.").wait_for()
    await tab.log_in("anna", page.url.removeprefix(tab.url))
    await page.get_by_role("button", name="Delete …").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await page.get_by_text("There is no subscription.").wait_for()
    await client.delete(made)


async def test_the_services_are_seen_with_their_settings_and_after_a_kill(
    tab: Tab, client: Client, gateway: Installation
) -> None:
    """A reader sees them; the password file is named, and no secret is shown."""
    page = tab.page
    await tab.log_in("rita", "/ui/services")
    rows = page.get_by_role("row")
    for name in ("lcm-api", "infra-openstack", "infra-k8s", "mgmt-executor", "vim-registry", "credentials-receiver"):
        await rows.filter(has_text=name).filter(has_text="✓ ready").first.wait_for()
    await rows.filter(has_text="auth_modes").filter(has_text="basic").wait_for()
    view = (await client.call("GET", "/kubevnfm/v1/services")).must(200).json
    since = (datetime.now(UTC) - timedelta(minutes=7)).isoformat()
    troubles = [{"part": "disk", "text": "It is full.", "isBlocking": True, "since": since}]
    view["services"][0]["processes"][0]["troubles"] = troubles
    await page.route("**/kubevnfm/v1/services", lambda route: route.fulfill(json=view))
    await page.get_by_role("listitem").filter(has_text="It is full., for 7 min").wait_for()
    await tab.faultless()
    await page.unroute_all(behavior="wait")
    await page.get_by_text("It is full.").wait_for(state="hidden")
    await tab.picture("services")
    await tab.faultless()
    await page.get_by_label("Also those that have their defaults").check()
    await rows.filter(has_text="rate_limit_burst").wait_for()
    await rows.filter(has_text="internal_token").filter(has_text="set, and not shown").wait_for()
    await tab.faultless()
    await asyncio.to_thread(gateway.kill, "kubevnfm")
    try:
        await page.get_by_text("The connection to the gateway is lost.").wait_for()
        assert not await page.get_by_role("alert").count(), "what is shown stays, and a lost connection is no error"
        await rows.filter(has_text="infra-k8s").first.wait_for()
    finally:
        await asyncio.to_thread(gateway.start_one, "kubevnfm")
    await page.get_by_text("The connection to the gateway is lost.").wait_for(state="hidden")
    await rows.filter(has_text="infra-k8s").filter(has_text="✓ ready").first.wait_for()
