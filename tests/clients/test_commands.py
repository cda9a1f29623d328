"""The unmodified python-tackerclient: each command for VNFs, packages and VIMs, in both API versions.

Not part of `make test`: `make test-clients` installs the client and runs this.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import aiohttp
import pytest
import yaml
from aiohttp import web
from callers.user import RESTING, SAMPLES, sample_body
from clouds.command_line import ENVIRONMENT, CommandLine, commands_of
from clouds.identity import KeystoneAccount, a_keystone
from clouds.lab_process import LabControl, LabProcess
from kubevnfm_csar.pack import pack
from kubevnfm_kit.http import serving
from patience import until
from servers.installations import SingleInstallation
from servers.subscriber import Subscriber

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

VNFD_ID: Final = sample_body("vm", "create")["vnfdId"]
CREATE_STACK: Final = ("heat", "stack_create")
LOOPBACK: Final = {"KUBEVNFM_ALLOWED_NETWORKS": "127.0.0.0/8"}
"""The network of the tests' subscribers and of the server that packages are fetched from."""
PASSWORD: Final = "pass-of-the-clients"
_BASIC: Final = {"authType": ["BASIC"], "paramsBasic": {"userName": "us", "password": "heard-only"}}


@dataclass(frozen=True)
class Site:
    """A running kubevnfm and the client settings to reach it."""

    installation: SingleInstallation
    access: Mapping[str, str]


@pytest.fixture(params=["none", "v3password"])
async def site(request: pytest.FixtureRequest, lab_process: LabProcess, tmp_path: Path) -> AsyncIterator[Site]:
    """A separate installation for each authentication method."""
    async with AsyncExitStack() as stack:
        if request.param == "none":
            installation = SingleInstallation(tmp_path / "kubevnfm", lab_process, **LOOPBACK)
            access = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": installation.url}
        else:
            boss = KeystoneAccount(PASSWORD, ("admin",))
            keystone = await stack.enter_async_context(a_keystone(boss=boss))
            installation = SingleInstallation(
                tmp_path / "kubevnfm",
                lab_process,
                **LOOPBACK,
                KUBEVNFM_AUTH_MODES="keystone",
                KUBEVNFM_AUTH_KEYSTONE_URL=keystone.url,
                KUBEVNFM_AUTH_KEYSTONE_USERNAME="gateway",
                KUBEVNFM_AUTH_KEYSTONE_PASSWORD=keystone.accounts["gateway"].password,
                KUBEVNFM_AUTH_KEYSTONE_PROJECTS=boss.project,
            )
            keystone.gateway_url = installation.url
            access = {
                "OS_AUTH_TYPE": "v3password",
                "OS_AUTH_URL": keystone.url,
                "OS_USERNAME": "boss",
                "OS_PASSWORD": PASSWORD,
                "OS_PROJECT_NAME": boss.project,
                "OS_USER_DOMAIN_NAME": "Default",
                "OS_PROJECT_DOMAIN_NAME": "Default",
            }
        installation.start()
        stack.callback(installation.stop)
        yield Site(installation, access)


@pytest.fixture
async def v1(site: Site) -> AsyncIterator[CommandLine]:
    async with CommandLine("1", site.access) as client:
        yield client


@pytest.fixture
async def v2(site: Site) -> AsyncIterator[CommandLine]:
    async with CommandLine("2", site.access) as client:
        yield client


class Files:
    """Writes the files that are arguments of commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def json(self, body: Mapping[str, Any]) -> str:
        path = self.folder / f"{uuid4()}.json"
        path.write_text(json.dumps(body))
        return str(path)

    def request(self, name: str, api_version: str) -> str:
        """Return a sample request in the form of the API version."""
        v1_form = SAMPLES / "vm" / "requests" / f"{name}.v1.json"
        return str(v1_form if api_version == "1" else v1_form.with_name(f"{name}.json"))

    def vim(self, site: Site) -> str:
        """Return the configuration file that `vim register` reads."""
        body = site.installation.lab.vim()
        path = self.folder / "vim.yaml"
        config = {
            "auth_url": body["auth_url"],
            "project_name": body["vim_project"]["name"],
            "project_domain_name": body["vim_project"]["project_domain_name"],
            **body["auth_cred"],
        }
        path.write_text(yaml.safe_dump(config))
        return str(path)

    def package(self, *, vnfd_id: str = VNFD_ID, software_version: str = "1.0") -> str:
        """Return the vm sample as a package with the given VNFD id."""
        folder = self.folder / str(uuid4())
        shutil.copytree(SAMPLES / "vm", folder)
        vnfd = folder / "Definitions" / "vm.vnfd.yaml"
        text = vnfd.read_text().replace(VNFD_ID, vnfd_id)
        vnfd.write_text(text.replace("software_version: '1.0'", f"software_version: '{software_version}'"))
        pack(folder, folder.with_suffix(".zip"))
        return str(folder.with_suffix(".zip"))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


# --- VIMs -------------------------------------------------------------------------------------------------------------


async def _register(client: CommandLine, files: Files, site: Site) -> dict[str, Any]:
    shown = await client.shows("vim", "register", "cloud", "--config-file", files.vim(site), "--is-default")
    return dict(shown)


async def test_the_commands_of_vims(site: Site, v1: CommandLine, files: Files) -> None:
    """API-130, API-132, API-141, API-150."""
    made = await _register(v1, files, site)
    assert made["auth_cred"]["password"] == "***"
    assert made["status"] == "ACTIVE"
    (listed,) = await v1.shows("vim", "list", "--long")
    assert listed["ID"] == made["id"]
    for name in ("cloud", made["id"]):
        assert (await v1.shows("vim", "show", name))["name"] == "cloud"
    changed = await v1.shows("vim", "set", "cloud", "--description", "ours", "--is-default", "False")
    assert (changed["description"], changed["is_default"]) == ("ours", False)
    again = await v1.shows("vim", "set", "cloud", "--config-file", files.vim(site), "--name", "sky")
    assert again["name"] == "sky"
    second = await v1.tries("vim", "register", "sky", "--config-file", files.vim(site))
    assert second.code != 0
    assert "named sky" in second.errors
    assert "deleted successfully" in await v1.does("vim", "delete", "sky")
    assert "Unable to find vim" in (await v1.tries("vim", "show", "sky")).errors
    assert v1.used == {name for name in commands_of("1") if name.startswith("vim ")}


# --- packages ---------------------------------------------------------------------------------------------------------


async def _checked(client: CommandLine, package_id: str) -> dict[str, Any]:
    async def done() -> dict[str, Any] | None:
        shown: dict[str, Any] = await client.shows("vnf", "package", "show", package_id)
        return shown if shown["Onboarding State"] in {"ONBOARDED", "ERROR", "CREATED"} else None

    return await until(done)


async def _onboard(client: CommandLine, archive: str) -> str:
    made = await client.shows("vnf", "package", "create", "--user-data", "key=value")
    package_id = str(made["ID"])
    assert "accepted" in await client.does("vnf", "package", "upload", "--path", archive, package_id)
    shown = await _checked(client, package_id)
    assert shown["Onboarding State"] == "ONBOARDED", shown
    assert shown["vnfmInfo"] == ["kubevnfm"]
    return package_id


async def _remove(client: CommandLine, package_id: str) -> None:
    await client.does("vnf", "package", "update", "--operational-state", "DISABLED", package_id)
    await client.does("vnf", "package", "delete", package_id)


async def test_the_commands_of_packages(v1: CommandLine, files: Files) -> None:
    """API-111, API-114, API-115, API-116, API-117, API-150."""
    archive = files.package()
    package_id = await _onboard(v1, archive)
    for selector in ((), ("--all_fields",), ("--fields", "checksum"), ("--exclude_fields", "checksum"),
                     ("--exclude_default",), ("--filter", f"(eq,vnfdId,{VNFD_ID})")):  # fmt: skip
        (listed,) = await v1.shows("vnf", "package", "list", *selector)
        assert listed["Id"] == package_id
    assert await v1.shows("vnf", "package", "list", "--filter", "(eq,vnfdId,unknown)") == []

    changed = await v1.shows("vnf", "package", "update", "--operational-state", "DISABLED", package_id)
    assert changed == {"Operational State": "DISABLED"}
    same = await v1.tries("vnf", "package", "update", "--operational-state", "DISABLED", package_id)
    assert same.code != 0
    updated = await v1.shows("vnf", "package", "update", "--user-data", "owner=us", package_id)
    assert updated["User Defined Data"]["owner"] == "us"

    content, vnfd, artifact = (str(files.folder / name) for name in ("content.zip", "vnfd", "artifact"))
    await v1.does("vnf", "package", "download", "--file", content, package_id)
    assert Path(content).read_bytes() == Path(archive).read_bytes()
    await v1.does("vnf", "package", "download", "--vnfd", "--type", "both", "--file", vnfd, package_id)
    assert Path(vnfd).read_bytes()
    await v1.does("vnf", "package", "download", "--vnfd", "--type", "application/zip", "--file", vnfd, package_id)
    assert Path(vnfd).read_bytes()[:2] == b"PK"
    hot = "BaseHOT/simple/vm_hot.yaml"
    await v1.does("vnf", "package", "artifact", "download", "--file", artifact, package_id, hot)
    assert Path(artifact).read_text() == (SAMPLES / "vm" / hot).read_text()
    await v1.does("vnf", "package", "delete", package_id)
    gone = await v1.tries("vnf", "package", "show", package_id)
    assert package_id in gone.errors
    assert v1.used == {name for name in commands_of("1") if name.startswith("vnf ")}


async def test_a_package_is_uploaded_from_an_address(v1: CommandLine, files: Files) -> None:
    """API-113, API-125, API-150: without the credentials that the address wants, and then with them."""
    content, login = Path(files.package()).read_bytes(), aiohttp.encode_basic_auth("reader", "pw-of-the-address")

    async def answer(request: web.Request) -> web.Response:
        is_right = request.headers.get("Authorization") == login
        return web.Response(body=content) if is_right else web.Response(status=401)

    app = web.Application()
    app.add_routes([web.get("/vm.zip", answer)])
    package_id = str((await v1.shows("vnf", "package", "create"))["ID"])
    async with serving(app, host="127.0.0.1", port=0) as port:
        upload = ("vnf", "package", "upload", "--url", f"http://127.0.0.1:{port}/vm.zip")
        assert "accepted" in await v1.does(*upload, package_id)
        refused = await _checked(v1, package_id)
        assert refused["Onboarding State"] == "ERROR"
        assert "401" in refused["onboardingFailureDetails"]["detail"]
        shown = ("--user-name", "reader", "--password", "pw-of-the-address")
        assert "accepted" in await v1.does(*upload, *shown, package_id)
        assert (await _checked(v1, package_id))["Onboarding State"] == "ONBOARDED"
    fetched = files.folder / "fetched.zip"
    await v1.does("vnf", "package", "download", "--file", str(fetched), package_id)
    assert fetched.read_bytes() == content


# --- life cycle -------------------------------------------------------------------------------------------------------


class Lcm:
    """Commands about instances and their operations."""

    def __init__(self, client: CommandLine, files: Files) -> None:
        self.client, self.files = client, files

    async def create(self, name: str = "machine") -> str:
        made = await self.client.shows("vnflcm", "create", VNFD_ID, "--name", name, "--description", "by hand")
        assert made["VNF Instance Name"] == name
        return str(made["ID"])

    async def rested(self, instance_id: str) -> dict[str, Any]:
        """Return the instance's newest operation once it rests."""

        async def rests() -> dict[str, Any] | None:
            wanted = f"(eq,vnfInstanceId,{instance_id})"
            listed = await self.client.shows("vnflcm", "op", "list", "--filter", wanted)
            newest = listed[-1]
            if newest["Operation State"] not in RESTING:
                return None
            shown: dict[str, Any] = await self.client.shows("vnflcm", "op", "show", newest["ID"])
            return shown

        return await until(rests)

    async def begins(self, instance_id: str, *arguments: str) -> None:
        """Run a command that starts an operation."""
        command, *more = arguments
        assert "accepted" in await self.client.does("vnflcm", command, *more)

    async def completes(self, instance_id: str, *arguments: str) -> dict[str, Any]:
        """Run a command whose operation must complete."""
        await self.begins(instance_id, *arguments)
        rested = await self.rested(instance_id)
        assert rested["Operation State"] == "COMPLETED", rested
        return rested

    async def fails(self, instance_id: str, lab: LabControl) -> str:
        """Instantiate while the cloud rejects stacks; return the operation, which is FAILED_TEMP."""
        async with lab.fault(*CREATE_STACK, status=403, message="the fault of this test"):
            await self.begins(instance_id, "instantiate", instance_id, self.request("instantiate"))
            rested = await self.rested(instance_id)
        assert rested["Operation State"] == "FAILED_TEMP", rested
        assert "the fault of this test" in str(rested["Error"])
        return str(rested["ID"])

    def request(self, name: str) -> str:
        return self.files.request(name, self.client.api_version)


@pytest.fixture(params=["1", "2"])
async def lcm(request: pytest.FixtureRequest, site: Site, v1: CommandLine, v2: CommandLine, files: Files) -> Lcm:
    """A client of each API version. The v1 client sets up the VIM and the package: v2 has no commands for them."""
    await _register(v1, files, site)
    await _onboard(v1, files.package())
    v1.used.clear()
    return Lcm(v1 if request.param == "1" else v2, files)


async def _versions(lcm: Lcm) -> None:
    versions = await lcm.client.shows("vnflcm", "versions")
    assert versions["uriPrefix"] == "/vnflcm"
    for major in ("1", "2"):
        versions = await lcm.client.shows("vnflcm", "versions", "--major-version", major)
        assert versions["uriPrefix"] == f"/vnflcm/v{major}"


async def _life(lcm: Lcm, files: Files) -> None:
    """Run each operation on one instance, from create to delete."""
    client = lcm.client
    instance_id = await lcm.create()
    assert instance_id in {each["ID"] for each in await client.shows("vnflcm", "list")}
    modify = files.json({"vnfInstanceName": "renamed", "vnfInstanceDescription": "by file"})
    assert "Update vnf" in await client.does("vnflcm", "update", instance_id, "--I", modify)
    assert (await lcm.rested(instance_id))["Operation"] == "MODIFY_INFO"
    assert (await client.shows("vnflcm", "show", instance_id))["VNF Instance Name"] == "renamed"
    await lcm.completes(instance_id, "instantiate", instance_id, lcm.request("instantiate"))
    shown = await client.shows("vnflcm", "show", instance_id)
    assert shown["Instantiation State"] == "INSTANTIATED"
    assert ("VNF Package ID" in shown) == (client.api_version == "1")
    assert isinstance(shown["VIM Connection Info"], list if client.api_version == "1" else dict)

    scale = ("--aspect-id", "VDU1_scale", "--number-of-steps", "1")
    await lcm.completes(instance_id, "scale", instance_id, "--type", "SCALE_OUT", *scale)
    shown = await client.shows("vnflcm", "show", instance_id)
    machines = [each["id"] for each in shown["Instantiated Vnf Info"]["vnfcResourceInfo"]]
    assert len(machines) == 2
    beyond = await client.tries("vnflcm", "scale", instance_id, "--type", "SCALE_OUT", *scale[:-1], "99")
    assert "numberOfSteps" in beyond.errors
    await lcm.completes(instance_id, "heal", "--cause", "deaf", "--vnfc-instance", machines[0], "--", instance_id)
    await lcm.completes(instance_id, "heal", instance_id)
    await lcm.completes(instance_id, "change-ext-conn", instance_id, lcm.request("change_ext_conn"))
    await lcm.completes(instance_id, "scale", instance_id, "--type", "SCALE_IN", *scale)

    listed = await client.shows("vnflcm", "op", "list", "--fields", "operationParams")
    assert len(listed) >= 7
    assert len(await client.shows("vnflcm", "op", "list", "--exclude-fields", "operationParams")) == len(listed)
    busy = await client.tries("vnflcm", "delete", instance_id)
    assert "INSTANTIATED" in busy.errors
    ended = await client.does(
        "vnflcm", "terminate", instance_id, "--termination-type", "GRACEFUL", "--graceful-termination-timeout", "1",
        "--D",
    )  # fmt: skip
    assert "is deleted successfully" in ended


async def _ends_of_operations(lcm: Lcm, lab: LabControl) -> None:
    client = lcm.client
    instance_id = await lcm.create("unlucky")
    operation = await lcm.fails(instance_id, lab)
    assert "accepted" in await client.does("vnflcm", "op", "rollback", operation)
    assert (await lcm.rested(instance_id))["Operation State"] == "ROLLED_BACK"
    operation = await lcm.fails(instance_id, lab)
    assert "accepted" in await client.does("vnflcm", "op", "retry", operation)
    assert (await lcm.rested(instance_id))["Operation State"] == "COMPLETED"
    wrong = await client.tries("vnflcm", "op", "retry", operation)
    assert "COMPLETED" in wrong.errors
    forceful = ("terminate", instance_id, "--termination-type", "FORCEFUL")
    await lcm.completes(instance_id, *forceful)
    operation = await lcm.fails(instance_id, lab)
    assert (await client.shows("vnflcm", "op", "fail", operation))["Operation State"] == "FAILED"
    if client.api_version == "1":  # the client has no cancel for version 2
        await _cancel(lcm, lab, instance_id)
    await client.does("vnflcm", "delete", instance_id)


async def _cancel(lcm: Lcm, lab: LabControl, instance_id: str) -> None:
    client = lcm.client
    await lab.forget_calls()
    async with lab.fault(*CREATE_STACK, effect="hang"):
        await lcm.begins(instance_id, "instantiate", instance_id, lcm.request("instantiate"))
        await lab.called(*CREATE_STACK)
        (running,) = [
            each["ID"]
            for each in await client.shows("vnflcm", "op", "list", "--filter", f"(eq,vnfInstanceId,{instance_id})")
            if each["Operation State"] == "PROCESSING"
        ]
        # The client takes the empty answer for a table after it has said that all went well, and stumbles.
        cancelled = await client.tries("vnflcm", "op", "cancel", "--cancel-mode", "FORCEFUL", running)
        assert "accepted" in cancelled.out
        assert (await lcm.rested(instance_id))["Operation State"] == "FAILED_TEMP"
    assert (await client.shows("vnflcm", "op", "fail", running))["Operation State"] == "FAILED"


async def _subscriptions(lcm: Lcm, files: Files) -> None:
    client = lcm.client
    async with Subscriber.listening() as subscriber:
        body = {
            "filter": {"vnfInstanceSubscriptionFilter": {"vnfdIds": [VNFD_ID]}, "operationTypes": ["TERMINATE"]},
            "callbackUri": subscriber.uri,
            "authentication": _BASIC,
        }
        made = await client.shows("vnflcm", "subsc", "create", files.json(body))
        assert made["Callback URI"] == subscriber.uri
        wanted = ("--filter", f"(eq,id,{made['ID']})")
        (listed,) = await client.shows("vnflcm", "subsc", "list", *wanted)
        assert listed["ID"] == made["ID"]
        shown = await client.shows("vnflcm", "subsc", "show", made["ID"])
        assert "heard-only" not in json.dumps(shown)
        assert "is deleted" in await client.does("vnflcm", "subsc", "delete", made["ID"])
        assert await client.shows("vnflcm", "subsc", "list", *wanted) == []


async def _alarms(lcm: Lcm, lab: LabControl, files: Files) -> None:
    client = lcm.client
    instance_id = await lcm.create("failing")
    operation = await lcm.fails(instance_id, lab)
    wanted = ("--filter", f"(eq,managedObjectId,{instance_id})")

    async def raised() -> list[dict[str, Any]] | None:
        return await client.shows("vnffm", "alarm", "list", *wanted) or None

    (alarm,) = await until(raised)
    assert (alarm["Perceived Severity"], alarm["Event Type"]) == ("MAJOR", "PROCESSING_ERROR_ALARM")
    shown = await client.shows("vnffm", "alarm", "show", alarm["ID"])
    assert operation in shown["Fault Details"][0]
    acknowledge = ("vnffm", "alarm", "update", "--ack-state", "ACKNOWLEDGED", alarm["ID"])
    assert (await client.shows(*acknowledge))["Ack State"] == "ACKNOWLEDGED"
    assert "already" in (await client.tries(*acknowledge)).errors
    await client.does("vnflcm", "op", "rollback", operation)
    assert (await lcm.rested(instance_id))["Operation State"] == "ROLLED_BACK"

    async def cleared() -> dict[str, Any] | None:
        one: dict[str, Any] = await client.shows("vnffm", "alarm", "show", alarm["ID"])
        return one if one["Alarm Cleared Time"] else None

    await until(cleared)
    await client.does("vnflcm", "delete", instance_id)
    async with Subscriber.listening() as subscriber:
        of_vnfd = {"vnfInstanceSubscriptionFilter": {"vnfdIds": [VNFD_ID]}, "perceivedSeverities": ["MAJOR"]}
        made = await client.shows(
            "vnffm", "sub", "create", files.json({"filter": of_vnfd, "callbackUri": subscriber.uri})
        )
        (listed,) = await client.shows("vnffm", "sub", "list", "--filter", f"(eq,id,{made['ID']})")
        assert subscriber.uri in listed.values()
        assert (await client.shows("vnffm", "sub", "show", made["ID"]))["ID"] == made["ID"]
        assert "deleted" in await client.does("vnffm", "sub", "delete", made["ID"])
        assert await client.shows("vnffm", "sub", "list") == []


async def _performance(lcm: Lcm, files: Files) -> None:
    client = lcm.client
    instance_id = await lcm.create("measured")
    target = {"prometheusHost": "127.0.0.1", "authInfo": {"ssh_username": "us", "ssh_password": "heard-only"}}
    metadata = {"monitoring": {"monitorName": "prometheus", "driverType": "external", "targetsInfo": [target]}}
    async with Subscriber.listening() as subscriber:
        common = {"objectType": "Vnfc", "callbackUri": subscriber.uri, "metadata": metadata}
        # Texts of digits, as in the samples of the client.
        periods = {
            "performanceMetricGroup": ["VirtualisedComputeResource"],
            "collectionPeriod": "1",
            "reportingPeriod": "1",
        }
        made = await client.shows(
            "vnfpm", "job", "create", files.json({**common, "objectInstanceIds": [instance_id], "criteria": periods})
        )
        (listed,) = await client.shows("vnfpm", "job", "list", "--filter", f"(eq,id,{made['ID']})")
        assert listed["Id"] == made["ID"]

        async def reported() -> str | None:
            shown = await client.shows("vnfpm", "job", "show", made["ID"])
            assert "heard-only" not in json.dumps(shown)
            return next((str(each["href"]) for each in shown["Reports"] or ()), None)

        report = (await until(reported)).rpartition("/")[2]
        assert (await client.shows("vnfpm", "report", "show", made["ID"], report))["Entries"] == []
        moved = files.json({"callbackUri": subscriber.uri, "authentication": _BASIC})
        assert (await client.shows("vnfpm", "job", "update", made["ID"], moved))["Callback Uri"] == subscriber.uri
        assert "deleted" in await client.does("vnfpm", "job", "delete", made["ID"])
        details = {"thresholdValue": 400.5, "hysteresis": 10.3}
        criteria = {
            "performanceMetric": f"VCpuUsageMeanVnf.{instance_id}",
            "thresholdType": "SIMPLE",
            "simpleThresholdDetails": details,
        }
        body = {**common, "objectInstanceId": instance_id, "criteria": criteria}
        made = await client.shows("vnfpm", "threshold", "create", files.json(body))
        (listed,) = await client.shows("vnfpm", "threshold", "list", "--filter", f"(eq,objectInstanceId,{instance_id})")
        shown = await client.shows("vnfpm", "threshold", "show", made["ID"])
        assert listed["ID"] == shown["ID"] == made["ID"]
        assert (await client.shows("vnfpm", "threshold", "update", made["ID"], moved))["Callback Uri"] == subscriber.uri
        assert "deleted" in await client.does("vnfpm", "threshold", "delete", made["ID"])
        assert await client.shows("vnfpm", "threshold", "list") == []
    await client.does("vnflcm", "delete", instance_id)


async def _change_of_package(lcm: Lcm, v1: CommandLine, files: Files) -> None:
    other_id = str(uuid4())
    other = await _onboard(v1, files.package(vnfd_id=other_id, software_version="2.0"))
    instance_id = await lcm.create("changing")
    await lcm.completes(instance_id, "instantiate", instance_id, lcm.request("instantiate"))
    body = {
        "vnfdId": other_id,
        "additionalParams": {"upgrade_type": "RollingUpdate", "vdu_params": [{"vdu_id": "VDU1"}]},
    }
    await lcm.completes(instance_id, "change-vnfpkg", instance_id, files.json(body))
    assert (await lcm.client.shows("vnflcm", "show", instance_id))["VNFD ID"] == other_id
    await lcm.completes(instance_id, "terminate", instance_id, "--termination-type", "FORCEFUL")
    await lcm.client.does("vnflcm", "delete", instance_id)
    await _remove(v1, other)


async def test_the_commands_of_life_cycles(lcm: Lcm, lab: LabControl, v1: CommandLine, files: Files) -> None:
    """API-034, API-057, API-058, API-094, API-141, API-150, API-190, API-215."""
    await _versions(lcm)
    await _subscriptions(lcm, files)
    await _life(lcm, files)
    await _ends_of_operations(lcm, lab)
    if lcm.client.api_version == "2":
        await _change_of_package(lcm, v1, files)
        await _alarms(lcm, lab, files)
        await _performance(lcm, files)
    ours = ("vnflcm ", "vnffm ", "vnfpm ")
    assert {name for name in lcm.client.used if name.startswith(ours)} == {
        name for name in commands_of(lcm.client.api_version) if name.startswith(ours)
    }


async def test_the_installed_program_itself(site: Site) -> None:
    """API-001, API-150: everything else runs in one process, to save its start."""
    process = await asyncio.create_subprocess_exec(
        ENVIRONMENT / "bin" / "openstack", "vnflcm", "versions", "-f", "json",
        env={"PATH": "/usr/bin:/bin", **site.access}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode == 0
    assert json.loads(out)["uriPrefix"] == "/vnflcm"
