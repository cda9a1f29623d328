"""The tasks of machines with the page, each with a slip that is shown at its field; and what two tabs do to the same thing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from callers.browser import Client, Tab
from callers.user import sample_body
from packages.vm_packages import OTHER_IMAGE, TWO_FLAVOURS, other_image, two_flavours

if TYPE_CHECKING:
    from playwright.async_api import Locator

pytestmark = [pytest.mark.page, pytest.mark.asyncio(loop_scope="session")]

CHANGED: Final = "It was changed elsewhere after this form was read."


class Tasks:
    """The page of one instance of machines, and its tasks by their forms."""

    def __init__(self, tab: Tab, instance_id: str) -> None:
        self.tab, self.page, self.instance_id = tab, tab.page, instance_id

    async def open(self, task: str) -> None:
        await self.page.goto(f"{self.tab.url}/ui/instances/{self.instance_id}")
        await self.page.get_by_role("navigation", name="Tasks").get_by_role("link", name=task, exact=True).click()
        await self.page.get_by_role("heading", name=task).wait_for()

    async def check(self) -> None:
        await self.page.get_by_role("button", name="Check").click()

    async def refused(self, field: Locator, text: str) -> None:
        """Wait until a fault is listed and at its field."""
        await self.check()
        await self.page.get_by_role("alert").filter(has_text=text).wait_for()
        assert await field.get_attribute("aria-invalid") == "true"

    async def do(self, task: str) -> None:
        """Check, send, watch it to its end, and go to the instance."""
        await self.check()
        await self.page.get_by_role("heading", name="This would be done").wait_for()
        await self.page.get_by_role("button", name=task, exact=True).click()
        await self.page.get_by_text("✓ completed").first.wait_for()
        await self.page.get_by_role("main").get_by_role("heading", level=1).get_by_role("link").click()
        await self.page.get_by_role("navigation", name="Tasks").wait_for()

    async def machines(self, count: int, text: str = "") -> None:
        """Wait until the tree has so many machines, each with a text."""
        machines = self.page.get_by_role("listitem").filter(has_text="OS::Nova::Server").filter(has_text=text)
        # The stack around them has their text, too.
        await machines.nth(count).wait_for()
        assert await machines.count() == count + 1


async def test_each_task_of_machines_shows_what_has_happened(tab: Tab, client: Client, tmp_path: Path) -> None:
    page = tab.page
    vnfd_id = (await client.upload(two_flavours(tmp_path)))["vnfdId"]
    assert vnfd_id == TWO_FLAVOURS
    vm_id = await client.create(vnfd_id, vnfInstanceName="tasks")
    await client.rest(await client.start(vm_id, "instantiate", sample_body("vm", "instantiate")))
    tasks = Tasks(tab, vm_id)
    await tab.log_in("anna", f"/ui/instances/{vm_id}")

    await tasks.open("Start or stop")
    await page.get_by_label("Change state to").select_option("STOPPED")
    await page.get_by_label("Graceful stop timeout").fill("-1")
    await tasks.refused(page.get_by_label("Graceful stop timeout"), "At least 0 expected.")
    await page.get_by_label("Graceful stop timeout").fill("")
    await tasks.do("Start or stop")
    await tasks.machines(1, "STOPPED")
    await tasks.open("Start or stop")
    await page.get_by_label("Change state to").select_option("STARTED")
    assert await page.get_by_label("Stop type").count() == 0, "a start has none"
    await tasks.do("Start or stop")
    await page.get_by_text("STOPPED").wait_for(state="hidden")

    await tasks.open("Scale to level")
    await tasks.check()
    await page.get_by_role("alert").filter(has_text="One of these is expected").wait_for()
    await page.get_by_label("Instantiation level ID").select_option(index=2)
    await tasks.do("Scale to level")
    await tasks.machines(3)
    await tasks.open("Scale")
    await page.get_by_label("Type").select_option("SCALE_OUT")
    await tasks.refused(page.get_by_label("Type"), "One of the values of the list is expected.")
    await page.get_by_text("No SCALE_OUT: VDU1_scale is at level 2 of 2").wait_for()
    await page.get_by_label("Type").select_option("SCALE_IN")
    await page.get_by_label("Number of steps").fill("3")
    await tasks.refused(page.get_by_label("Number of steps"), "At most 2 expected.")
    await page.get_by_label("Number of steps").fill("1")
    await tasks.do("Scale")
    await tasks.machines(2)

    await tasks.open("Heal")
    chosen = page.get_by_role("group", name="VNFC instance ID").get_by_role("checkbox")
    await chosen.nth(1).wait_for()
    assert await chosen.count() == 2, "each machine is offered once"
    before = await _servers(client, vm_id)
    await chosen.first.check()
    await tasks.do("Heal")
    assert len(before & await _servers(client, vm_id)) == 1, "one of them was made again"

    await tasks.open("Change external connectivity")
    await page.get_by_role("button", name="Add to External virtual links").click()
    link = page.get_by_role("group", name="External virtual links 1").first
    await link.get_by_label("ID, required", exact=True).fill("external")
    await tasks.refused(link.get_by_label("Resource ID, required"), "A value is expected here.")
    await link.get_by_label("Resource ID, required").fill("net1")
    await link.locator("summary", has_text="External CPs").click()
    await page.get_by_role("button", name="Add to External CPs").click()
    await page.get_by_label("CPD ID").fill("VDU1_CP1")
    await tasks.do("Change external connectivity")

    for flavour in ("large", "simple"):
        await tasks.open("Change flavour")
        await page.get_by_label("New flavour ID").wait_for()
        await tasks.do("Change flavour")
        assert (await client.instance(vm_id))["instantiatedVnfInfo"]["flavourId"] == flavour

    await tasks.open("Change package")
    await client.upload(other_image(tmp_path))
    await page.reload()
    await page.get_by_label("New package").select_option(label="Virtual machine 2.0 (1.0)")
    await tasks.do("Change package")
    assert (await client.instance(vm_id))["vnfdId"] == OTHER_IMAGE
    assert await page.get_by_role("link", name="Change flavour").count() == 0, "its package has one flavour"
    await page.goto(f"{tab.url}/ui/instances/{vm_id}/change_flavour")
    await page.get_by_role("heading", name="Change flavour").wait_for()
    await page.get_by_role("alert").filter(has_text="its VNFD has one flavour only").wait_for()
    await tab.faultless()
    await client.terminate(vm_id)


async def _servers(client: Client, vm_id: str) -> set[str]:
    found = (await client.instance(vm_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    return {each["computeResource"]["resourceId"] for each in found}


async def test_what_another_tab_has_changed_is_not_overwritten(tab: Tab, client: Client) -> None:
    """The form says what has changed, keeps what was filled in, also over a reload, and continues with the new values."""
    page, first = tab.page, tab.page
    names = [{"a.b": each, "a": {"b": each}} for each in ("old", "new")]
    vm_id = await client.create(await client.sample("vm"), vnfInstanceName="both", metadata=names[0])
    vim_id = (await client.vims())["lab"]["id"]
    await tab.log_in("anna", f"/ui/instances/{vm_id}/modify")
    second = await page.context.new_page()
    await second.goto(f"{tab.url}/ui/instances/{vm_id}/modify")
    for each, name in ((second, "theirs"), (first, "mine")):
        await each.get_by_label("VNF instance name").fill(name)
        await each.get_by_role("button", name="Check").click()
        if each is second:
            await each.get_by_role("button", name="Modify", exact=True).click()
            await each.get_by_text("✓ completed").first.wait_for()
            done = (await client.lcm("PATCH", f"/vnf_instances/{vm_id}", {"metadata": names[1]})).must(202)
            await client.rest(done.headers["Location"].rsplit("/", 1)[-1])
    changed = page.get_by_role("alert").filter(has_text=CHANGED)
    await changed.filter(has_text="VNF instance name: it was both, it is theirs").wait_for()
    await changed.filter(has_text="Your change was not made.").wait_for()
    # Names may have dots: these are two places.
    assert await changed.get_by_role("listitem").filter(has_text="it was old, it is new").count() == 2
    await tab.faultless()
    await tab.picture("changed")
    await page.reload()
    await changed.wait_for()
    assert await page.get_by_label("VNF instance name").input_value() == "mine"
    await page.get_by_role("button", name="Load the new values").click()
    await page.get_by_role("button", name="Check").click()
    await page.get_by_role("button", name="Modify", exact=True).click()
    await page.get_by_text("✓ completed").first.wait_for()
    assert (await client.instance(vm_id))["vnfInstanceName"] == "mine"

    for each in (second, first):
        await each.goto(f"{tab.url}/ui/vims/{vim_id}/change")
        await each.get_by_label("Description").wait_for()
    for each, text in ((second, "theirs"), (first, "mine")):
        await each.get_by_label("Description").fill(text)
        await each.get_by_role("button", name="Change", exact=True).click()
        if each is second:
            await each.get_by_role("heading", name="lab").wait_for()
    await changed.filter(has_text="Description: it was nothing, it is theirs").wait_for()
    await page.reload()
    await changed.filter(has_text="Description: it was nothing, it is theirs").wait_for()
    assert await changed.get_by_role("listitem").count() == 1, "a stored draft has no secrets, which did not change"
    # A password that was replaced is not shown, and not overwritten.
    await page.get_by_role("button", name="Load the new values").click()
    same = {"auth_cred": {"password": client.installation.lab.vim_password}}
    (await client.call("PUT", f"/v1.0/vims/{vim_id}", {"vim": same})).must(200)
    await page.get_by_role("button", name="Change", exact=True).click()
    await changed.filter(has_text="a password or another secret").wait_for()
    await page.get_by_role("button", name="Load the new values").click()
    await page.get_by_role("button", name="Change", exact=True).click()
    await page.get_by_role("heading", name="lab").wait_for()
    await page.get_by_text("mine", exact=True).wait_for()

    (await client.call("PUT", f"/v1.0/vims/{vim_id}", {"vim": {"description": ""}})).must(200)
    await client.delete(vm_id)
