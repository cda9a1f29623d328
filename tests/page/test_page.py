"""The web page on a real gateway and the lab, as people use it (docs/page.md)."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import pytest
from callers.browser import Client, Tab
from clouds.identity import AUDIENCE, PAGE_CLIENT, an_issuer
from clouds.lab_process import LabControl, LabProcess
from servers.installations import Installation, SingleInstallation

if TYPE_CHECKING:
    from playwright.async_api import Browser, Request, Route

SAMPLE: Final = Path(__file__).parents[2] / ".run/samples/vm.zip"
VNFD_ID: Final = b"1a27cf0a-6c8f-4f43-93d1-2e4a62b1f9a3"

pytestmark = [pytest.mark.page, pytest.mark.asyncio(loop_scope="session")]


async def test_one_logs_in_and_out_and_a_wrong_password_is_refused(tab: Tab) -> None:
    page = tab.page
    await page.goto(tab.url)
    assert page.url == f"{tab.url}/ui/"
    await page.get_by_label("Name").fill("anna")
    await tab.picture("login")
    await page.get_by_label("Password").fill("wrong")
    await page.keyboard.press("Enter")
    await page.get_by_role("alert").get_by_text("user or password is wrong").wait_for()
    await tab.faultless()
    await tab.log_in("anna", "/ui/instances?problem=true")
    await page.get_by_role("heading", name="Instances").wait_for()
    assert await page.get_by_label("With a problem").is_checked(), "a shared link is kept over the login"
    cookies = {each["name"]: each for each in await page.context.cookies()}
    assert cookies["kubevnfm-session"]["httpOnly"]
    await page.reload()
    await page.get_by_role("button", name="Log out").click()
    await page.get_by_text("You have logged out.").wait_for()
    assert not await page.context.cookies()


async def test_one_logs_in_and_out_at_an_identity_server(
    browser: Browser, lab_process: LabProcess, tmp_path: Path
) -> None:
    """The page keeps its place, and sees no token; what another tab was sent logs no one in."""
    async with an_issuer() as issuer:
        gateway = SingleInstallation(
            tmp_path,
            lab_process,
            KUBEVNFM_AUTH_MODES="bearer",
            KUBEVNFM_AUTH_BEARER_ISSUER=issuer.url,
            KUBEVNFM_AUTH_BEARER_AUDIENCE=AUDIENCE,
            KUBEVNFM_PAGE_LOGIN_CLIENT_ID=PAGE_CLIENT,
        )
        await asyncio.to_thread(gateway.start)
        context = await browser.new_context()
        context.set_default_timeout(60_000)
        tab = Tab(await context.new_page(), gateway.url)
        tab.heed()
        page, sent = tab.page, list[str]()
        page.on("request", lambda request: sent.append(f"{request.url} {request.post_data}"))
        await page.goto(f"{gateway.url}/ui/instances?problem=true")
        await tab.faultless()
        await page.get_by_role("button", name="Log in at 127.0.0.1").click()
        await page.get_by_role("heading", name="Instances").wait_for()
        assert page.url == f"{gateway.url}/ui/instances?problem=true"
        await page.get_by_text("anna", exact=True).wait_for()
        assert (
            await page.evaluate("document.cookie + JSON.stringify([{...sessionStorage}, {...localStorage}])")
            == "[{},{}]"
        )
        (back,) = [each.partition(" ")[0] for each in sent if "/ui/login?" in each]
        other = await context.new_page()
        await other.goto(back)
        await other.get_by_text("anna", exact=True).wait_for()
        await page.get_by_role("button", name="Log out").click()
        await page.get_by_text("You have logged out.").wait_for()
        assert not await context.cookies()
        await other.goto(back)
        await other.get_by_role("alert").get_by_text("not begun in this tab").wait_for()
        issuer.refusal = "access_denied"
        await other.get_by_role("button", name="Log in at").click()
        await other.get_by_role("alert").get_by_text("has denied the access").wait_for()
        assert "eyJ" not in str([each for each in sent if each.startswith(gateway.url)])
        assert {each.partition("?")[0] for each in tab.elsewhere} == {f"{issuer.url}/authorize", f"{issuer.url}/logout"}
        assert not tab.wrong
        await context.close()
        await asyncio.to_thread(gateway.stop)


async def test_an_operation_is_watched_fails_is_explained_and_retried(
    tab: Tab, client: Client, faults: LabControl
) -> None:
    """The failure is seen without a reload, and the retry is asked for once, by keyboard alone."""
    page = tab.page
    cluster_id = await client.create(await client.sample("cluster"), vnfInstanceName="shown <b>bold</b>")
    await tab.log_in("anna")
    async with faults.fault("program", "kubeadm join*", times=1, message="the fault <img src=x onerror=alert(1)>"):
        operation = await client.start(cluster_id, "instantiate", client.cluster())
        row = page.get_by_role("row").filter(has_text="shown <b>bold</b>")
        await row.get_by_role("link", name="Instantiate").click()
        await page.get_by_role("heading", name="shown <b>bold</b>").wait_for()
        await page.get_by_text("failed, waits for a decision").first.wait_for()
    await page.get_by_text("the fault <img src=x onerror=alert(1)>").first.wait_for()
    assert operation in page.url
    assert await page.title() == f"Operations {operation[:8]} · kubevnfm"
    log = page.get_by_label("Log", exact=True)
    await page.get_by_role("option", name="join", selected=True).wait_for()
    await log.filter(has_text="the fault").wait_for()
    # The page reads what can be done after the event that it has failed.
    await page.get_by_role("heading", name="Next").wait_for()
    await tab.picture("operation")
    await _no_log_stands_under_another_title(tab)
    await tab.faultless()
    await page.get_by_role("button", name="Show the plan").click()
    await page.locator("svg rect").first.wait_for()
    await tab.picture("plan")
    await tab.faultless()
    await page.get_by_role("button", name="Show the timeline").click()
    await page.get_by_role("button", name="Retry …").focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("dialog").wait_for()
    await tab.faultless()
    await page.keyboard.press("Enter")
    await page.get_by_role("dialog").wait_for(state="hidden")
    await page.get_by_text("completed").first.wait_for()
    await page.get_by_role("link", name="shown <b>bold</b>").click()
    await page.get_by_role("heading", name="shown <b>bold</b>").wait_for()
    await page.get_by_text("master").first.wait_for()
    await tab.picture("instance")
    await tab.faultless()
    await page.get_by_role("link", name="Instances").click()
    await page.get_by_role("table").wait_for()
    await tab.picture("instances")
    await page.go_back()
    await page.get_by_text("master").first.wait_for()
    await _thousands_are_shown_with_what_has_failed(tab, client, operation, cluster_id)
    await page.goto(f"{tab.url}/ui/operations/{operation}")
    await page.get_by_role("link", name="shown <b>bold</b>").click()
    await page.get_by_role("heading", name="shown <b>bold</b>").wait_for()
    await page.go_back()
    await page.get_by_role("heading", name="Instantiate").wait_for()
    await client.terminate(cluster_id)


async def _no_log_stands_under_another_title(tab: Tab) -> None:
    """The row that is chosen next may have printed nothing yet, and its log may be late."""
    page, answered = tab.page, asyncio.Event()

    async def late(route: Route) -> None:
        await answered.wait()
        await route.continue_()

    await page.route("**/log?*", late)
    await page.get_by_role("option", name="copy").last.click()
    await page.get_by_label("Log", exact=True).filter(has_text="Reading").wait_for()
    answered.set()
    await page.get_by_label("Log", exact=True).filter(has_not_text="Reading").wait_for()
    await page.unroute_all(behavior="wait")


async def _thousands_are_shown_with_what_has_failed(tab: Tab, client: Client, operation: str, instance: str) -> None:
    """The answers of the gateway, made large: 200 machines with 16 tasks each, and 5,000 objects."""
    page = tab.page
    paths = (f"/kubevnfm/v1/operations/{operation}", f"/kubevnfm/v1/instances/{instance}/tree")
    view, tree = [(await client.call("GET", path)).must(200).json for path in paths]
    node, task = view["nodes"][0], view["nodes"][0]["tasks"][0]
    view["nodes"] = [
        {
            **node,
            "name": f"machine-{at}",
            "tasks": [{**task, "task": f"task-{number}", "state": "finished"} for number in range(16)],
        }
        for at in range(200)
    ]
    view["nodes"][150]["tasks"][3]["state"] = "failed"
    leaf = {"kind": "object", "type": "Deployment", "children": []}
    objects = [
        {**leaf, "name": f"object-{at}", "health": "problem" if at < 300 else "ok", "state": "any"}
        for at in range(5000)
    ]
    tree["root"]["children"] = [{"kind": "release", "name": "release", "health": "problem", "children": objects}]
    for path, body in zip(paths, (view, tree), strict=True):
        await page.route(f"**{path}", partial(_answer, body))
    await page.goto(f"{tab.url}/ui/operations/{operation}")
    chosen = page.get_by_role("option", name="task-3", selected=True)
    await chosen.wait_for()
    place = "element => [element, element.closest('[role=listbox]')].map(each => each.getBoundingClientRect().top)"
    row, box = await chosen.evaluate(place)
    assert row >= box, "the failed task is in sight among thousands"
    await page.goto(f"{tab.url}/ui/instances/{instance}")
    await page.get_by_text("object-199", exact=True).wait_for()
    assert await page.get_by_text("object-200", exact=True).count() == 0
    await page.get_by_text("4800 are left").wait_for()
    await page.get_by_text("100 with a problem").wait_for()
    await page.get_by_role("button", name="Show more").click()
    await page.get_by_text("object-399", exact=True).wait_for()
    await page.unroute_all(behavior="wait")


async def _answer(body: object, route: Route) -> None:
    await route.fulfill(json=body)


async def test_the_keyboard_is_led_to_the_content_and_wrong_addresses_lead_on(tab: Tab, client: Client) -> None:
    """`client` has registered the lab, which is searched for."""
    page = tab.page
    await tab.log_in("anna", "/ui/instances?page=of-another-time")
    await page.get_by_role("button", name="First page").click()
    await page.get_by_role("alert").wait_for(state="hidden")
    await page.goto(f"{tab.url}/ui/nowhere")
    await page.get_by_role("heading", name="No such page").wait_for()
    await tab.faultless()
    await page.reload()
    await page.get_by_role("heading", name="No such page").wait_for()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.wait_for_function("document.activeElement.id === 'main'")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Operations").wait_for()
    await page.wait_for_function("document.activeElement.id === 'main'")
    # Enter does not wait for the hits, and takes none of an earlier text.
    await page.keyboard.press("/")
    await page.keyboard.type("lab")
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="lab").wait_for()


async def test_lists_are_filtered_and_paged_by_the_gateway(tab: Tab, client: Client) -> None:
    """The marker of a page has the filters of the first; a changed filter begins at the first page."""
    page, path = tab.page, "/kubevnfm/v1/instances"
    made = await client.create(await client.sample("cluster"), vnfInstanceName="paged")
    first = (await client.call("GET", f"{path}?limit=50&name=page")).must(200).json
    assert [each["id"] for each in first["items"]] == [made]

    def asked(**query: str) -> Callable[[Request], bool]:
        return lambda sent: urlsplit(sent.url).path == path and dict(parse_qsl(urlsplit(sent.url).query)) == query

    await tab.log_in("anna", "/ui/instances")
    async with page.expect_request(asked(limit="50", name="other")):
        await page.get_by_label("Name begins with").fill("other")
        await page.keyboard.press("Enter")
    await page.get_by_text("There are no such instances.").wait_for()
    answer = {**first, "next": f"{tab.url}{path}?nextpage_opaque_marker=second"}
    await page.route(lambda url: url.endswith("?limit=50&name=page"), partial(_answer, answer))
    await page.get_by_label("Name begins with").fill("page")
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="paged").wait_for()
    async with page.expect_request(asked(nextpage_opaque_marker="second")):
        await page.get_by_role("link", name="Next page").click()
    async with page.expect_request(asked(limit="50", name="page", problem="true")):
        await page.get_by_label("With a problem").check()
    await page.get_by_text("There are no such instances.").wait_for()
    await page.unroute_all(behavior="wait")
    await client.delete(made)


async def test_the_page_says_that_the_gateway_is_away_and_goes_on(
    tab: Tab, client: Client, gateway: Installation
) -> None:
    page = tab.page
    # The page reads its other views ahead.
    async with page.expect_response(lambda answer: "/Vims-" in answer.url):
        await tab.log_in("anna", "/ui/operations")
    await page.get_by_role("table").or_(page.get_by_text("There are no such operations.")).wait_for()
    gateway.kill("kubevnfm")
    try:
        await page.get_by_text("The connection to the gateway is lost.").wait_for()
        # A view that is opened meanwhile is read as soon as the gateway answers.
        await page.get_by_role("link", name="VIMs").click()
        await page.get_by_text("The gateway does not answer.").wait_for()
    finally:
        gateway.start_one("kubevnfm")
    await page.get_by_role("link", name="lab").wait_for()
    await page.get_by_text("The connection to the gateway is lost.").wait_for(state="hidden")
    made = await client.create(await client.sample("cluster"))
    await page.get_by_role("link", name="Instances").click()
    await page.get_by_text(made).wait_for()
    await client.delete(made)


async def test_a_reader_sees_and_may_not_act(tab: Tab, client: Client, faults: LabControl) -> None:
    page = tab.page
    cluster_id = await client.create(await client.sample("cluster"))
    async with faults.fault("program", "kubeadm join*", times=1, message="the fault of this test"):
        operation = await client.start(cluster_id, "instantiate", client.cluster())
        await client.rest(operation)
    await tab.log_in("rita", f"/ui/operations/{operation}")
    await page.get_by_text("These tasks need the role operator.").wait_for()
    await page.get_by_role("link", name="Operations", exact=True).click()
    await page.get_by_role("row").filter(has_text="failed, waits").first.wait_for()
    await tab.picture("operations")
    await page.go_back()
    await page.get_by_text("These tasks need the role operator.").wait_for()
    assert await page.get_by_role("button", name="Retry").count() == 0
    status = await page.evaluate(
        "path => fetch(path, {method: 'POST', headers: {Version: '2.0.0'}}).then(answer => answer.status)",
        f"/vnflcm/v2/vnf_lcm_op_occs/{operation}/retry",
    )
    assert status == 403, "the gateway refuses, whatever the page shows"
    await page.goto(f"{tab.url}/ui/instances/{cluster_id}")
    await page.get_by_role("link", name="Its alarms").click()
    alarm = page.get_by_role("row").filter(has_text="the fault of this test")
    await alarm.filter(has_text="MAJOR").get_by_role("cell", name="no", exact=True).wait_for()
    assert await page.get_by_role("row").count() == 2, "those of other objects are not shown"
    await _an_alarm_is_acknowledged(tab, client, cluster_id)
    # An acknowledgement is no event.
    await alarm.get_by_role("cell", name="yes", exact=True).wait_for()
    assert await page.get_by_role("button", name=re.compile("Acknowledge|Take back")).count() == 0
    await client.act(operation, "rollback")
    await page.get_by_text("There is no such alarm.").wait_for()
    await page.get_by_label("Cleared ones, too").check()
    await alarm.filter(has_text="cleared").wait_for()
    await page.goto(f"{tab.url}/ui/operations/{operation}")
    await page.get_by_text("rolled back").first.wait_for()
    await client.delete(cluster_id)


async def _an_alarm_is_acknowledged(reader: Tab, client: Client, instance_id: str) -> None:
    """An operator does it, takes it back, and does it again a moment after another one."""
    browser = reader.page.context.browser
    assert browser is not None
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    tab = Tab(await context.new_page(), reader.url)
    tab.heed()
    page = tab.page
    await tab.log_in("anna", f"/ui/alarms?object={instance_id}")
    await page.get_by_role("button", name="Acknowledge").click()
    await page.get_by_role("button", name="Take back").click()
    button = page.get_by_role("button", name="Acknowledge")
    await button.wait_for()
    await tab.picture("alarms")
    [alarm] = (await client.call("GET", f"/kubevnfm/v1/alarms?object={instance_id}")).must(200).json["items"]
    path, merge = f"/vnffm/v1/alarms/{alarm['id']}", {"Content-Type": "application/merge-patch+json"}

    async def is_late(route: Route) -> None:
        by_another = {"Version": "1.5.0", **merge}
        (await client.call("PATCH", path, {"ackState": "ACKNOWLEDGED"}, headers=by_another)).must(200)
        await route.continue_()

    await page.route(f"**{path}", is_late)
    async with page.expect_response(lambda answer: answer.url.endswith(path) and answer.status == 409):
        await button.click()
    await page.get_by_role("button", name="Take back").wait_for()
    assert not await page.get_by_role("alert").count(), "it is as wanted"
    assert not tab.wrong
    await context.close()


def _vm_with(text: str, other: str) -> bytes:
    """Return the sample package `vm` with another text in its files, and a VNFD id of its own."""
    changed, vnfd_id = io.BytesIO(), uuid4()
    with zipfile.ZipFile(SAMPLE) as sample, zipfile.ZipFile(changed, "w") as archive:
        for entry in sample.infolist():
            content = sample.read(entry).replace(VNFD_ID, str(vnfd_id).encode())
            archive.writestr(entry.filename, content.replace(text.encode(), other.encode()))
    return changed.getvalue()


async def test_packages_are_dropped_checked_found_and_their_names_are_text(tab: Tab, client: Client) -> None:
    page, hostile = tab.page, "<img src=x onerror=alert(1)>"
    await tab.log_in("anna", "/ui/packages")
    chooser = page.get_by_label("Drop packages here")
    await chooser.set_input_files(
        [
            {
                "name": f"{hostile}.zip",
                "mimeType": "application/zip",
                "buffer": _vm_with("Virtual machine", f"'{hostile}'"),
            },
            {
                "name": "broken.zip",
                "mimeType": "application/zip",
                "buffer": _vm_with("topology_template:", "topology: ["),
            },
            {"name": "none.zip", "mimeType": "application/zip", "buffer": b"no archive"},
        ]
    )
    await page.get_by_role("link", name=hostile, exact=True).wait_for()
    await page.get_by_role("row").filter(has_text="✗ error").wait_for()
    await page.get_by_role("alert").get_by_text("a zip archive (CSAR) expected").wait_for()
    # The empty package that was made for it is removed.
    await page.get_by_role("row").filter(has_text="· created").wait_for(state="hidden")
    await tab.picture("packages")
    await tab.faultless()
    await page.get_by_role("link", name="broken.zip").click()
    await page.locator(".error").wait_for()
    await tab.faultless()
    # By keyboard alone: the slash leads to the search, the first hit is chosen.
    await page.keyboard.press("/")
    await page.keyboard.type("lab")
    await page.get_by_role("option", name="vim lab").wait_for()
    await tab.faultless()
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="lab").wait_for()
    await page.get_by_text("✓ active").wait_for()
    await tab.picture("vim")
    await tab.faultless()
    await page.get_by_role("link", name="VIMs").click()
    await page.get_by_role("link", name="lab").wait_for()
    await tab.faultless()
    for package in (await client.call("GET", "/kubevnfm/v1/packages")).must(200).json["items"]:
        if package.get("vnfProductName") == hostile or package["onboardingState"] == "ERROR":
            path = f"/vnfpkgm/v1/vnf_packages/{package['id']}"
            if package["operationalState"] == "ENABLED":
                (await client.call("PATCH", path, {"operationalState": "DISABLED"})).must(200)
            (await client.call("DELETE", path)).must(204)
