"""The web page under what people and networks do to it: lost gateways, hidden tabs, hostile names, much enlarged text (docs/page.md)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest
from callers.browser import Client, Tab
from clouds.lab_process import LabControl
from servers.installations import Installation

if TYPE_CHECKING:
    from playwright.async_api import Route

pytestmark = [pytest.mark.page, pytest.mark.asyncio(loop_scope="session")]

_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
LOST: Final = "The connection to the gateway is lost."
LONG: Final = "x" * 10_000
HOSTILE: Final = {
    "markup": "<img src=x onerror=alert(1)><script>alert(1)</script>&lt;b&gt;",
    "right to left": "\u202egnp.exe\u2067 \u0627\u0644\u062d\u0627\u0644\u0629 \u202d",
    "no blank": LONG,
    "zero width": "a\u200bb\u200dc\ufeffd\u2060e",
    "control": "a\x07b\x1bc\x7fd\u0085e",
}


async def test_a_cluster_is_watched_while_it_is_built_and_the_gateway_is_killed(
    tab: Tab, client: Client, gateway: Installation, faults: LabControl
) -> None:
    """The banner comes and goes by itself, nothing is an error, and the end is the one that the gateway has."""
    page = tab.page
    await tab.log_in("anna", "/ui/operations")
    cluster_id = await client.create(await client.sample("cluster"), vnfInstanceName="watched")
    async with faults.fault("program", "kubeadm join*", effect="hang"):
        operation = await client.start(cluster_id, "instantiate", client.cluster())
        # Without a reload: the operation comes into the list by its event.
        await page.get_by_role("row").filter(has_text="watched").get_by_role("link", name="Instantiate").click()
        await page.get_by_role("option", name="join").first.wait_for()
        gateway.kill("kubevnfm")
        try:
            await page.get_by_text(LOST).wait_for()
            assert not await page.get_by_role("alert").count(), "what is shown stays, and a lost connection is no error"
            assert await page.get_by_role("option", name="join").count()
        finally:
            gateway.start_one("kubevnfm")
        await page.get_by_text(LOST).wait_for(state="hidden")
    await page.get_by_text("✓ completed").first.wait_for()
    view = (await client.call("GET", f"/kubevnfm/v1/operations/{operation}")).must(200).json
    assert view["state"] == "COMPLETED"
    assert not await page.get_by_role("alert").count()
    rows = page.get_by_role("listbox").get_by_role("option")
    count = sum(1 + len(node["tasks"]) for node in view["nodes"]) + len(view["tasks"]) + len(view["steps"])
    await page.wait_for_function(f"document.querySelector('[role=option]').ariaSetSize == {count}")
    shown = [await rows.nth(at).locator(".title").text_content() for at in range(len(view["steps"]))]
    expected = [f"{each['title']}, {each['state']}" for each in view["steps"]]
    assert [" ".join((text or "").split())[2:] for text in shown] == expected
    await client.terminate(cluster_id)


@asynccontextmanager
async def _hidden(tab: Tab) -> AsyncIterator[None]:
    """Hide the tab, in the eyes of its page: a browser without a screen hides none."""
    hide = "isHidden => { Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden });"
    hide += " document.dispatchEvent(new Event('visibilitychange')); }"
    await tab.page.evaluate(hide, True)
    yield
    await tab.page.evaluate(hide, False)


async def test_a_hidden_tab_rests_keeps_its_state_and_catches_up(
    tab: Tab, client: Client, gateway: Installation
) -> None:
    """The place and the filter stay; events meanwhile, and a death of the gateway, are caught up with once it is seen again."""
    page, requests = tab.page, list[str]()
    made = await client.create(await client.sample("cluster"), vnfInstanceName="seen")
    await tab.log_in("anna", "/ui/instances?name=se")
    await page.get_by_role("link", name="seen").wait_for()
    async with _hidden(tab):
        await asyncio.sleep(11)
        page.on("request", lambda sent: requests.append(sent.url))
        gateway.kill("kubevnfm")
        gateway.start_one("kubevnfm")
        # The connections of the other client have died.
        async with Client(gateway) as again:
            other = await again.create(await again.sample("cluster"), vnfInstanceName="second")
        await asyncio.sleep(3)
        assert not requests, "a hidden tab asks nothing"
        assert not await page.get_by_text(LOST).is_visible()
    await page.get_by_role("link", name="second").wait_for()
    assert page.url.endswith("/ui/instances?name=se")
    assert await page.get_by_label("Name begins with").input_value() == "se"
    assert not await page.get_by_role("alert").count()
    async with Client(gateway) as again:
        for each in (made, other):
            await again.delete(each)


async def test_hostile_names_are_text_and_break_no_view(tab: Tab, client: Client) -> None:
    """All names of tasks, nodes and objects, which machines and clusters choose, and those of instances that the gateway takes."""
    page, made = tab.page, dict[str, str]()
    vnfd_id = await client.sample("cluster")
    for kind, name in HOSTILE.items():
        answer = await client.lcm("POST", "/vnf_instances", {"vnfdId": vnfd_id, "vnfInstanceName": name})
        assert answer.status in {201, 400, 422}, kind
        if answer.status == 201:
            made[kind] = answer.json["id"]
    assert {"markup", "right to left"} <= made.keys()
    await tab.log_in("anna", "/ui/instances")
    for kind, instance in made.items():
        await page.goto(f"{tab.url}/ui/instances/{instance}")
        heading = page.get_by_role("heading", level=1)
        await heading.wait_for()
        assert await heading.evaluate("each => each.textContent") == HOSTILE[kind]
        await tab.fits()
    await page.goto(f"{tab.url}/ui/instances")
    await page.get_by_role("table").wait_for()
    await tab.fits()
    await tab.faultless()
    await _hostile_tasks(tab, client, next(iter(made.values())))
    await _hostile_alarms(tab, next(iter(made.values())))
    for instance in made.values():
        await client.delete(instance)


async def _hostile_tasks(tab: Tab, client: Client, instance: str) -> None:
    """An operation and a tree as a hostile worker or cluster could make them: what the gateway passes on."""
    page = tab.page
    operation = "11111111-2222-4333-8444-555555555555"
    at = "2026-11-28T00:00:00Z"
    names = list(HOSTILE.values())
    tasks = [
        {
            "step": "one",
            "attempt": 1,
            "task": name,
            "state": "failed",
            "message": name,
            "startedAt": at,
            "updatedAt": at,
        }
        for name in names
    ]
    step = {"kind": "x", "state": "failed", "attempt": 1, "timeoutS": 1, "startedAt": at, "endedAt": at}
    view = {
        "sequence": "x",
        "id": operation,
        "vnfInstanceId": instance,
        "vnfInstanceName": LONG,
        "operation": "INSTANTIATE",
        "state": "FAILED_TEMP",
        "startTime": at,
        "stateEnteredTime": at,
        "isReversible": True,
        "cause": {"code": "x", "text": names[1], "object": {"kind": "Pod", "name": LONG}, "isWait": False, "page": "x"},
        "warnings": [{"text": name} for name in names],
        "waits": [{"text": name, "since": at, "lastError": name} for name in names],
        "steps": [
            {**step, "name": f"step-{number}", "title": name, "after": [f"step-{number - 1}"] if number else []}
            for number, name in enumerate(names)
        ],
        "nodes": [{"name": name, "tasks": tasks} for name in names],
        "tasks": tasks,
    }
    leaf = {"kind": "object", "health": "problem", "children": []}
    tree = {
        "sequence": "x",
        "root": {
            **leaf,
            "kind": "vnf",
            "name": LONG,
            "children": [
                {
                    **leaf,
                    "name": name,
                    "type": name,
                    "role": name,
                    "state": name,
                    "text": name,
                    "place": name,
                    "addresses": [name],
                }
                for name in names
            ],
        },
    }
    await page.route(f"**/kubevnfm/v1/operations/{operation}", partial(_answer, view))
    await page.route(f"**/kubevnfm/v1/operations/{operation}/log*", lambda route: route.fulfill(body="\n".join(names)))
    await page.route(f"**/kubevnfm/v1/instances/{instance}/tree", partial(_answer, tree))
    await page.goto(f"{tab.url}/ui/operations/{operation}")
    await page.get_by_label("Log", exact=True).filter(has_text="alert(1)").wait_for()
    for name in (HOSTILE["markup"], HOSTILE["zero width"], HOSTILE["control"]):
        assert await page.get_by_role("option").filter(has_text=name).count()
    await tab.fits()
    await tab.faultless()
    await page.get_by_role("button", name="Show the plan").click()
    await page.locator("svg rect").first.wait_for()
    await tab.fits()
    await page.goto(f"{tab.url}/ui/instances/{instance}")
    await page.get_by_text(HOSTILE["markup"]).first.wait_for()
    await tab.fits()
    await tab.faultless()
    await page.unroute_all(behavior="wait")


async def _hostile_alarms(tab: Tab, instance: str) -> None:
    """Alarms whose sentences and objects have such names."""
    page, at = tab.page, "2026-11-28T00:00:00Z"
    names = list(HOSTILE.values())
    alarm = {
        "state": "OPEN",
        "severity": "MAJOR",
        "faultType": "workload-troubled",
        "probableCause": "x",
        "objectKind": "vnf",
        "objectId": instance,
        "ackState": "UNACKNOWLEDGED",
        "raisedAt": at,
    }
    alarms = [
        {**alarm, "id": str(number), "objectName": name, "text": name, "details": [name] * 3}
        for number, name in enumerate(names)
    ]
    await page.route("**/kubevnfm/v1/alarms?*", partial(_answer, {"sequence": "x", "items": alarms}))
    await page.goto(f"{tab.url}/ui/alarms")
    await page.get_by_role("link", name=HOSTILE["markup"]).wait_for()
    assert await page.get_by_text(HOSTILE["markup"]).count() == 3, "its object, and two equal sentences"
    await tab.fits()
    await tab.faultless()
    await page.unroute_all(behavior="wait")


async def _answer(body: object, route: Route) -> None:
    await route.fulfill(body=json.dumps(body), content_type="application/json")


async def _places(tab: Tab, *further: str) -> list[str]:
    """Return the address of each view: all that links lead to from the page's own navigation, one of each kind, and further ones.

    A view that is added to the page is in it by itself.
    """
    page, found = tab.page, dict[str, str]()
    links = page.get_by_role("navigation", name="Views").get_by_role("link")
    waiting = [str(await each.get_attribute("href")) for each in await links.all()]
    while waiting:
        path = waiting.pop(0).partition("?")[0]
        kind = _ID.sub("*", path)
        if kind in found:
            continue
        found[kind] = path
        await page.goto(f"{tab.url}{path}")
        await _is_read(tab)
        waiting += await page.locator("main a[href^='/ui/']").evaluate_all("all => all.map(each => each.pathname)")
    return [*found.values(), *further]


async def _is_read(tab: Tab) -> None:
    await tab.page.get_by_role("heading", level=1).first.wait_for()
    await tab.page.get_by_text("Reading …").first.wait_for(state="hidden")


async def test_each_view_is_whole_at_400_percent_goes_back_and_can_be_shared(
    tab: Tab, client: Client, faults: LabControl
) -> None:
    """400 % of a screen of 1280x1024 is a viewport of 320x256 (WCAG 1.4.10): axe finds nothing, in light and dark, and nothing scrolls sideways."""
    page = tab.page
    cluster_id = await client.create(await client.sample("cluster"), vnfInstanceName="enlarged")
    async with faults.fault("program", "kubeadm join*", times=1, message="the fault of this test"):
        operation = await client.start(cluster_id, "instantiate", client.cluster())
        await client.rest(operation)
    await tab.log_in("anna")
    await page.get_by_role("row").filter(has_text="enlarged").wait_for()
    operation_path = f"/ui/operations/{operation}"
    places = await _places(tab, f"{operation_path}?as=plan", "/ui/operations?state=FAILED_TEMP", "/ui/nowhere")
    assert len(places) >= 10, places
    headings: dict[str, str] = {}
    for place in places:
        await page.goto(f"{tab.url}{place}")
        await _is_read(tab)
        headings[place] = await page.get_by_role("heading", level=1).first.inner_text()
        await tab.faultless((("light", 320, 256), ("dark", 320, 256)))
    await _goes_back(tab, places, headings)
    await client.act(operation, "rollback")
    await client.delete(cluster_id)


async def _goes_back(tab: Tab, places: list[str], headings: dict[str, str]) -> None:
    """Back and forward within one document show each view again, and a link opens in another tab as it was."""
    page = tab.page
    go = """path => { const link = Object.assign(document.createElement('a'), { href: path });
        document.body.append(link); link.click(); link.remove(); }"""
    for place in places:
        await page.evaluate(go, place)
        await page.get_by_role("heading", level=1, name=headings[place]).first.wait_for()
    for place in reversed(places[:-1]):
        await page.go_back()
        await page.wait_for_url(f"{tab.url}{place}")
        await page.get_by_role("heading", level=1, name=headings[place]).first.wait_for()
    await page.go_forward()
    await page.get_by_role("heading", level=1, name=headings[places[1]]).first.wait_for()
    shared = await page.context.new_page()
    await shared.goto(f"{tab.url}{places[-2]}")
    await shared.get_by_role("heading", level=1, name=headings[places[-2]]).wait_for()
    await shared.close()
