"""The main job with the page alone, from an empty gateway, by mouse and by keyboard (docs/walk-page.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from callers.browser import Client, Tab
from callers.hands import Hand, Keyboard, Mouse
from callers.user import sample_body
from callers.users import PASSWORD, users_file
from clouds.lab_process import LabControl, LabProcess
from patience import until_true
from servers.installations import Installation, SingleInstallation

if TYPE_CHECKING:
    from playwright.async_api import Browser, Locator, Page, Route

SAMPLES: Final = Path(__file__).parents[2] / ".run/samples"
DOCS: Final = Path(__file__).parents[2] / "docs"

pytestmark = [pytest.mark.page, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(params=[Mouse, Keyboard], ids=["mouse", "keyboard"])
def kind(request: pytest.FixtureRequest) -> type[Hand]:
    found: type[Hand] = request.param
    return found


@pytest.fixture
def empty(lab_process: LabProcess, tmp_path: Path) -> Iterator[Installation]:
    users = users_file(tmp_path, anna=["admin"], rita=["reader"])
    settings = {"KUBEVNFM_AUTH_MODES": "basic", "KUBEVNFM_AUTH_USERS_FILE": str(users)}
    installation = SingleInstallation(tmp_path, lab_process, **settings)
    installation.start()
    yield installation
    installation.stop()


async def test_the_main_job_with_the_page_alone(
    kind: type[Hand], empty: Installation, browser: Browser, faults: LabControl
) -> None:
    """From the registration of the VIM to the deletion of all that was made; a failure on the way is explained and retried."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(25_000)
    tab = Tab(await context.new_page(), empty.url)
    tab.heed()
    try:
        # Pictures are made once, and axe looks once.
        await Walk(tab, kind(tab.page), empty.lab, is_shown=kind is Mouse).all(faults)
    finally:
        await context.close()
    assert not tab.wrong
    assert not tab.elsewhere


async def test_the_page_of_the_walk_is_of_this_walk() -> None:
    """Its pictures are made here, its commands are those of the other walk, and each thing that one presses is pressed here."""
    page, here = (DOCS / "walk-page.md").read_text(), Path(__file__).read_text()
    for picture in re.findall(r"pictures/page/([a-z-]+)\.png", page):
        assert f'self.shown("{picture}"' in here
        assert (DOCS / f"pictures/page/{picture}.png").is_file()
    other = (DOCS / "walk-cli.md").read_text()
    commands = [line for line in page.splitlines() if line.startswith("    ")]
    assert len(commands) == 3
    assert all(command in other for command in commands)
    for pressed in re.findall(r"\*\*([^*]+)\*\*", page):
        assert pressed in here, pressed


async def _stored(page: Page, text: str) -> None:
    """Wait until a text is in the storage of the tab."""

    async def is_stored() -> bool:
        return text in await page.evaluate("JSON.stringify(sessionStorage)")

    await until_true(is_stored, pause_s=0.05)


async def test_a_draft_outlives_events_the_gateway_and_the_login_without_its_secrets(
    tab: Tab, client: Client, gateway: Installation
) -> None:
    page, secret = tab.page, "swordfish-9"
    cluster_id = await client.create(await client.sample("cluster"), vnfInstanceName="drafted")
    path = f"/ui/instances/{cluster_id}/instantiate"
    await tab.log_in("anna", f"/ui/instances/{cluster_id}")
    await page.get_by_role("link", name="Instantiate").click()
    node = page.get_by_role("group", name="Master node", exact=True)
    name, password = node.get_by_label("Username, required"), node.get_by_label("Password", exact=True)
    await name.fill("ubuntu")
    await password.fill(secret)
    await page.get_by_label("Further attributes").last.fill(
        '{"db_password": "swordfish-9", "proxy": "http://u:swordfish-9@h"}'
    )
    await _stored(page, "ubuntu")
    modified = await client.call(
        "PATCH", f"/vnflcm/v2/vnf_instances/{cluster_id}", {"vnfInstanceName": "renamed"}, headers={"Version": "2.0.0"}
    )
    await client.rest(modified.must(202).headers["Location"].rpartition("/")[2])
    gateway.kill("kubevnfm")
    try:
        await page.get_by_text("The connection to the gateway is lost.").wait_for()
        await name.fill("debian")
    finally:
        gateway.start_one("kubevnfm")
    await page.get_by_text("The connection to the gateway is lost.").wait_for(state="hidden")
    assert (await name.input_value(), await password.input_value()) == ("debian", secret)
    for storage in ("sessionStorage", "localStorage", "location", "history.state"):
        assert "swordfish" not in await page.evaluate(f"JSON.stringify({storage}) ?? ''"), storage
    await _stored(page, "debian")
    await page.context.clear_cookies()
    await page.reload()
    await page.get_by_label("Name").fill("anna")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await page.get_by_text("What you had filled in is here again").wait_for()
    assert page.url.endswith(path)
    assert (await name.input_value(), await password.input_value()) == ("debian", "")
    await page.get_by_role("button", name="Begin again").click()
    assert await name.input_value() == ""
    await name.fill("debian")
    await _stored(page, "debian")
    await page.get_by_role("button", name="Log out").click()
    await page.get_by_text("You have logged out.").wait_for()
    assert await page.evaluate("sessionStorage.length") == 0
    await client.delete(cluster_id)


async def test_a_name_that_is_not_known_is_corrected_before_it_is_sent(tab: Tab, client: Client) -> None:
    page = tab.page
    vm_id = await client.create(await client.sample("vm"), vnfInstanceName="misspelled")
    await client.rest(await client.start(vm_id, "instantiate", sample_body("vm", "instantiate")))
    await tab.log_in("anna", f"/ui/instances/{vm_id}/heal")
    await page.get_by_text("Additional parameters").first.click()
    further = page.get_by_label("Further attributes")
    await further.fill("{")
    await page.get_by_role("button", name="Check").click()
    await page.get_by_role("alert").filter(has_text="This is not JSON.").wait_for()
    await further.fill('{"al": true, "__proto__": {"x": 1}}')
    await page.get_by_role("button", name="Check").click()
    await page.get_by_role("button", name="Did you mean all?").click()
    await page.get_by_role("button", name="Did you mean all?").wait_for(state="hidden")
    await page.get_by_role("heading", name="This would be done").wait_for()
    assert "al" not in json.loads(await further.input_value())
    await tab.faultless()
    await page.get_by_role("button", name="Heal", exact=True).wait_for()
    # The link Repair of a part with a problem leads here.
    info = (await client.instance(vm_id))["instantiatedVnfInfo"]
    server = info["vnfcResourceInfo"][0]["computeResource"]["resourceId"]
    await page.goto(f"{tab.url}/ui/instances/{vm_id}/heal?resource={server}")
    assert await page.get_by_role("group", name="VNFC instance ID").get_by_role("checkbox").first.is_checked()
    await client.terminate(vm_id)


async def _package(client: Client, vnfd_id: str) -> str:
    [one] = (await client.call("GET", f"/kubevnfm/v1/packages?vnfdId={vnfd_id}")).must(200).json["items"]
    return str(one["id"])


async def test_a_careless_person_sends_what_the_fields_show(tab: Tab, client: Client) -> None:
    """A choice is taken back, a fault does not take the focus from what one types, and no plan is of other values."""
    page = tab.page
    vnfd_id = await client.sample("cluster")
    await tab.log_in("anna", f"/ui/packages/{await _package(client, vnfd_id)}/create")
    node = page.get_by_role("group", name="Master node", exact=True)
    level = page.get_by_label("Instantiation level ID")
    await level.select_option("One worker (smallest)")
    await level.select_option("Not given")
    assert await level.evaluate("element => element.selectedOptions[0].textContent") == "Not given"
    await page.get_by_role("button", name="Check").click()
    await page.get_by_role("alert").filter(has_text="to be corrected").wait_for()
    await page.get_by_role("alert").filter(has_text="Aspect ID; or VDU ID").wait_for()
    username = node.get_by_label("Username, required")
    await username.press_sequentially("ubuntu")
    assert await username.input_value() == "ubuntu"
    key, file = node.get_by_label("Private key", exact=True), node.get_by_label("Private key from a file")
    await file.set_input_files({"name": "key", "mimeType": "text/plain", "buffer": b"one\ntwo\n"})
    await node.get_by_text("2 lines are given").wait_for()
    await file.set_input_files({"name": "key", "mimeType": "text/plain", "buffer": b"x" * 1_000_001})
    await node.get_by_text("This file is too large").wait_for()
    await key.press_sequentially("other")
    assert await key.input_value() == "other"
    await node.get_by_text("2 lines are given").wait_for(state="hidden")

    cluster_id = await client.create(vnfd_id, vnfInstanceName="old")
    await page.goto(f"{tab.url}/ui/instances/{cluster_id}/modify")
    name = page.get_by_label("VNF instance name")
    await name.fill("checked")

    async def change_meanwhile(route: Route) -> None:
        answer = await route.fetch()
        await name.fill("later")
        await route.fulfill(response=answer)

    await page.route("**/*dry_run=true", change_meanwhile, times=1)
    await page.get_by_role("button", name="Check").click()
    await page.get_by_text("This was changed while it was checked").wait_for()
    assert await page.get_by_role("heading", name="This would be done").count() == 0
    await page.get_by_role("button", name="Check").click()
    await page.get_by_role("button", name="Modify", exact=True).dblclick()
    await page.get_by_text("✓ completed").first.wait_for()
    assert (await client.instance(cluster_id))["vnfInstanceName"] == "later"
    await client.delete(cluster_id)


async def test_an_instance_is_created_once_though_the_answer_is_lost(tab: Tab, client: Client) -> None:
    """An instance that a request without an answer has made is found, and one can begin again."""
    page = tab.page
    vnfd_id = await client.sample("vm")
    await tab.log_in("anna", f"/ui/packages/{await _package(client, vnfd_id)}/create")

    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    async def made() -> list[str]:
        items = (await client.call("GET", f"/kubevnfm/v1/instances?vnfdId={vnfd_id}")).must(200).json["items"]
        return [each["id"] for each in items if each["name"] == "lost"]

    await page.get_by_label("VNF instance name").fill("lost")
    await page.route("**/vnf_instances", lose, times=1)
    await page.get_by_role("button", name="Check").click()
    await page.get_by_role("alert").filter(has_text="The gateway does not answer.").wait_for()
    await page.get_by_role("button", name="Check").click()
    await page.get_by_role("alert").filter(has_text="a virtual link for connection point").wait_for()
    await page.get_by_role("button", name="Check").click()
    await page.get_by_role("alert").filter(has_text="a virtual link for connection point").wait_for()
    href = await page.get_by_role("link", name="Show it").get_attribute("href")
    assert href is not None
    assert await made() == [href.rpartition("/")[2]]
    await page.get_by_role("button", name="Begin again").click()
    await page.get_by_text("The identifier of the instance is created").wait_for(state="hidden")
    assert await page.get_by_label("VNF instance name").input_value() == ""
    for each in await made():
        await client.delete(each)


async def test_a_reader_is_offered_no_task(tab: Tab, client: Client) -> None:
    page = tab.page
    cluster_id = await client.create(await client.sample("cluster"), vnfInstanceName="read")
    await tab.log_in("rita", f"/ui/instances/{cluster_id}")
    await page.get_by_role("heading", name="read").wait_for()
    package = (await client.call("GET", "/kubevnfm/v1/packages?name=Kubernetes%20cluster")).must(200).json["items"][0]
    vim = (await client.call("GET", "/kubevnfm/v1/vims")).must(200).json["items"][0]
    for path, heading in (
        (f"packages/{package['id']}", "Kubernetes cluster"),
        ("vims", "VIMs"),
        (f"vims/{vim['id']}", vim["name"]),
    ):
        assert await page.get_by_role("navigation", name="Tasks").count() == 0
        await page.goto(f"{tab.url}/ui/{path}")
        await page.get_by_role("heading", name=heading).wait_for()
    assert await page.get_by_role("link", name="Register a VIM").count() == 0
    for path in (
        f"instances/{cluster_id}/instantiate", f"instances/{cluster_id}/modify", f"packages/{package['id']}/create", "vims/new",
        f"vims/{vim['id']}/change",
    ):  # fmt: skip
        await page.goto(f"{tab.url}/ui/{path}")
        await page.get_by_text("This needs the role").wait_for()
        assert await page.locator("form").count() == 0
    await client.delete(cluster_id)


class Walk:
    """The steps of docs/walk-page.md."""

    def __init__(self, tab: Tab, hand: Hand, lab: LabProcess, *, is_shown: bool) -> None:
        self.tab, self.hand, self.lab, self.is_shown = tab, hand, lab, is_shown

    @property
    def page(self) -> Page:
        return self.tab.page

    async def all(self, faults: LabControl) -> None:
        await self.tab.log_in("anna")
        await self.page.get_by_text("There are no operations yet").wait_for()
        await self.register()
        await self.upload()
        await self.build_a_cluster(faults)
        await self.deploy()
        await self.scale_and_heal()
        await self.end()

    async def shown(self, name: str, at: Locator | None = None) -> None:
        """Let axe look, and make the picture."""
        if self.is_shown:
            await self.tab.faultless()
            await self.tab.picture(name, at)

    async def go(self, view: str) -> None:
        await self.hand.press(self.page.get_by_role("navigation", name="Views").get_by_role("link", name=view))
        await self.page.get_by_role("heading", name=view, exact=True).wait_for()

    def part(self, name: str) -> Locator:
        return self.page.get_by_role("group", name=name, exact=True)

    async def register(self) -> None:
        await self.go("VIMs")
        await self.hand.press(self.page.get_by_role("link", name="Register a VIM"))
        await self.page.get_by_role("heading", name="Register a VIM").wait_for()
        vim = self.lab.vim()
        await self.hand.write(self.page.get_by_label("Name, required").first, "lab")
        await self.hand.write(self.page.get_by_label("Auth URL, required"), vim["auth_url"])
        login = self.part("Auth credentials")
        await self.hand.choose(login.get_by_label("Way"), "Username, User domain name, Password")
        await self.hand.write(login.get_by_label("Username, required"), vim["auth_cred"]["username"])
        await self.hand.write(login.get_by_label("User domain name, required"), vim["auth_cred"]["user_domain_name"])
        await self.hand.write(login.get_by_label("Password, required"), "wrong")
        await self.hand.choose(login.get_by_label("Cert verify"), "False")
        project = self.part("VIM project")
        await self.hand.choose(project.get_by_label("Way"), "Name, Project domain name")
        await self.hand.write(project.get_by_label("Name, required", exact=True), vim["vim_project"]["name"])
        await self.hand.write(
            project.get_by_label("Project domain name, required"), vim["vim_project"]["project_domain_name"]
        )
        await self.shown("walk-register", self.page.get_by_role("button", name="Register"))
        await self.hand.press(self.page.get_by_role("button", name="Register"))
        await self.page.get_by_role("alert").filter(has_text="Keystone rejects the user").wait_for()
        await self.hand.write(login.get_by_label("Password, required"), vim["auth_cred"]["password"])
        await self.hand.press(self.page.get_by_role("button", name="Register"))
        await self.page.get_by_role("heading", name="lab").wait_for()
        await self.page.get_by_text("✓ active").wait_for()
        await self.shown("walk-vim")

    async def upload(self) -> None:
        await self.go("Packages")
        chooser = self.page.get_by_label("Drop packages here")
        await self.hand.give(chooser, [SAMPLES / "cluster.zip", SAMPLES / "cnf.zip"])
        for name in ("Kubernetes cluster", "Web server"):
            await self.page.get_by_role("row").filter(has_text=name).filter(has_text="✓ onboarded").wait_for()
        await self.shown("walk-packages")

    async def build_a_cluster(self, faults: LabControl) -> None:
        await self.hand.press(self.page.get_by_role("link", name="Kubernetes cluster"))
        await self.hand.press(self.page.get_by_role("link", name="Create an instance"))
        await self.hand.write(self.page.get_by_label("VNF instance name"), "k8s")
        await self.hand.choose(self.page.get_by_label("Instantiation level ID"), "One worker (smallest)")
        for role, prefix, aspect in (
            ("Master node", "masterNode_CP1", "master_instance"),
            ("Worker node", "workerNode_CP2", "worker_instance"),
        ):
            node = self.part(role)
            await self.hand.write(node.get_by_label("Username, required"), "ubuntu")
            await self.hand.write(node.get_by_label("Password", exact=True), self.lab.machine_password)
            await self.hand.write(node.get_by_label("Aspect ID"), aspect)
            await self.hand.write(node.get_by_label("SSH CP name, required"), prefix)
        await self.hand.write(self.part("Master node").get_by_label("Pod CIDR"), "192.168.0.0/160")
        await self.hand.choose(self.page.get_by_label("User data", exact=True), "UserData/cluster_user_data.py")
        await self.hand.write(self.page.get_by_label("Class of the user data"), "ClusterUserData")
        await self.hand.press(self.page.get_by_role("button", name="Check"))
        # The page says some faults at once, the gateway the others at its check; each leads to its field.
        await self._leads_to("Cluster CP name", self.part("Master node").get_by_label("Cluster CP name, required"))
        await self.hand.write(self.part("Master node").get_by_label("Cluster CP name, required"), "masterNode_CP1")
        await self.hand.press(self.page.get_by_role("button", name="Check"))
        await self.page.get_by_text("The identifier of the instance is created").wait_for()
        await self._leads_to("Pod CIDR", self.part("Master node").get_by_label("Pod CIDR"))
        await self.shown("walk-fault")
        await self.hand.write(self.part("Master node").get_by_label("Pod CIDR"), "192.168.0.0/16")
        await self.hand.press(self.page.get_by_role("button", name="Check"))
        await self.page.get_by_role("heading", name="This would be done").wait_for()
        await self.page.get_by_text("Register the cluster as a VIM").wait_for()
        await self.shown("walk-plan", self.page.get_by_role("button", name="Instantiate"))
        async with faults.fault("program", "kubeadm join*", times=1, message="connection refused"):
            await self.hand.press(self.page.get_by_role("button", name="Instantiate"))
            await self.page.get_by_text("failed, waits for a decision").first.wait_for()
        await self.page.get_by_label("Log", exact=True).filter(has_text="connection refused").wait_for()
        await self.shown("walk-failed")
        await self._confirm("Retry")
        await self.page.get_by_text("✓ completed").first.wait_for()
        await self.hand.press(self.page.get_by_role("main").get_by_role("link", name="k8s"))
        await self.page.get_by_role("heading", name="k8s").wait_for()
        await self.page.get_by_text("master").first.wait_for()
        assert await self.page.get_by_role("link", name="Instantiate").count() == 0, "its state does not allow it"
        await self.shown("walk-cluster")
        await self.go("VIMs")
        await self.page.get_by_role("row").filter(has_text="kubernetes").filter(has_text="✓ active").wait_for()

    async def _leads_to(self, name: str, field: Locator) -> None:
        await self.hand.press(self.page.get_by_role("alert").get_by_role("link", name=name))
        await field.and_(self.page.locator(":focus")).wait_for()
        assert await field.get_attribute("aria-invalid") == "true"

    async def _confirm(self, name: str) -> None:
        await self.hand.press(self.page.get_by_role("button", name=f"{name} …"))
        dialog = self.page.get_by_role("dialog")
        await self.hand.press(dialog.get_by_role("button", name=name, exact=True))
        await dialog.wait_for(state="hidden")

    async def deploy(self) -> None:
        await self.go("Packages")
        await self.hand.press(self.page.get_by_role("link", name="Web server"))
        await self.hand.press(self.page.get_by_role("link", name="Create an instance"))
        await self.hand.write(self.page.get_by_label("VNF instance name"), "web")
        await self.hand.press(self.page.get_by_role("button", name="Check"))
        await self.hand.press(self.page.get_by_role("button", name="Instantiate"))
        await self._completed("web")
        await self.page.get_by_text("Deployment").first.wait_for()

    async def _completed(self, name: str) -> None:
        """Watch the operation to its end, and go to its instance."""
        await self.page.get_by_text("✓ completed").first.wait_for()
        await self.hand.press(self.page.get_by_role("main").get_by_role("link", name=name))
        await self.page.get_by_role("heading", name=name, exact=True).wait_for()

    async def _task(self, name: str) -> None:
        await self.hand.press(
            self.page.get_by_role("navigation", name="Tasks").get_by_role("link", name=name, exact=True)
        )

    async def scale_and_heal(self) -> None:
        await self._task("Scale")
        await self.hand.choose(self.page.get_by_label("Type"), "SCALE_OUT")
        await self.shown("walk-scale")
        await self.hand.press(self.page.get_by_role("button", name="Check"))
        button = self.page.get_by_role("button", name="Scale", exact=True)
        if self.is_shown:
            # It is sent once.
            await button.dblclick()
        else:
            await self.hand.press(button)
        await self._completed("web")
        await self._task("Heal")
        box = self.page.get_by_role("group", name="VNFC instance ID").get_by_role("checkbox").first
        await self.hand.press(box)
        await self.hand.press(self.page.get_by_role("button", name="Check"))
        await self.hand.press(self.page.get_by_role("button", name="Heal", exact=True))
        await self._completed("web")
        await self.hand.press(self.page.get_by_role("link", name="Its operations"))
        await self.page.get_by_role("row").filter(has_text="Heal").wait_for()
        assert await self.page.get_by_role("link", name="Scale").count() == 1
        await self.page.go_back()

    async def end(self) -> None:
        for name in ("web", "k8s"):
            await self.go("Instances")
            await self.hand.press(self.page.get_by_role("link", name=name, exact=True))
            await self._task("Terminate")
            await self.hand.press(self.page.get_by_role("button", name="Check"))
            await self.hand.press(self.page.get_by_role("button", name="Terminate", exact=True))
            await self._completed(name)
            await self._confirm("Delete")
            await self.page.get_by_role("heading", name="Instances").wait_for()
        await self.page.get_by_text("There are no such instances.").wait_for()
        for name in ("Kubernetes cluster", "Web server"):
            await self.go("Packages")
            await self.hand.press(self.page.get_by_role("link", name=name))
            await self._confirm("Disable")
            await self._confirm("Delete")
            await self.page.get_by_role("heading", name="Packages").wait_for()
        await self.page.get_by_text("There is no package yet.").wait_for()
        await self.go("VIMs")
        await self.hand.press(self.page.get_by_role("link", name="lab"))
        await self._confirm("Delete")
        await self.page.get_by_text("No VIM is registered.").wait_for()
