"""The whole lab: real machines and clusters behind the cloud, its control interface, and the lab as a process."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import asyncssh
import pytest
from aiohttp import web
from clouds.openstack_stand import Answer, path_of
from kubevnfm_lab.lab import Lab, LabSettings
from kubevnfm_lab.machines import StateDirInUse
from kubevnfm_lab.openstack.settings import CloudSettings
from packages.openstack_templates import SMALL, VERSION


class Client:
    """Calls one lab: its control interface, and Heat."""

    def __init__(self, lab: Lab, session: aiohttp.ClientSession) -> None:
        self.lab, self._session = lab, session

    async def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        url = self.lab.control_url + path if path.startswith("/") else path
        options = {"json": body} if body is not None else {}
        async with self._session.request(method, url, headers=headers, **options) as answer:
            is_json = answer.content_type == "application/json"
            parsed = await answer.json() if is_json and answer.status != 204 else await answer.text()
            return Answer(answer.status, answer.content_type, dict(answer.headers), parsed)

    async def token(self) -> Answer:
        """Log in to the project of the lab."""
        user = {"name": "nfv", "domain": {"id": "default"}, "password": "nfv"}
        scope = {"project": {"name": "nfv", "domain": {"id": "default"}}}
        auth = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
        return await self.call("POST", f"{self.lab.auth_url}/auth/tokens", auth)

    async def make_stack(self, name: str, template: str = SMALL) -> dict[str, Any]:
        token = await self.token()
        headers = {"X-Auth-Token": token.headers["X-Subject-Token"]}
        root = f"{self.lab.base_url}/orchestration/v1/{token.body['token']['project']['id']}"
        made = await self.call("POST", f"{root}/stacks", {"stack_name": name, "template": template}, headers)
        task = self.lab.cloud.engine.stacks[made.body["stack"]["id"]].task
        assert task is not None
        await task
        shown = await self.call("GET", made.headers["Location"], headers=headers)
        stack: dict[str, Any] = shown.body["stack"]
        return stack


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with Lab.start(LabSettings(state_dir=tmp_path)) as lab, aiohttp.ClientSession() as session:
        yield Client(lab, session)


async def test_a_server_of_a_stack_is_a_machine_one_can_log_in_to(client: Client) -> None:
    stack = await client.make_stack("one")
    assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]
    address = stack["outputs"][0]["output_value"]
    async with asyncssh.connect(
        address, client.lab.ssh_port, username="ubuntu", password="ubuntu", known_hosts=None
    ) as machine:
        assert (await machine.run("hostname", check=True)).stdout == "small\n"
    inventory = (await client.call("GET", "/inventory")).body
    assert [one["name"] for one in inventory["machines"]] == ["small"]
    assert inventory["servers"][0]["addresses"] == [address]
    assert inventory["clusters"] == []
    assert path_of(stack).startswith("/orchestration/v1/")


OUTSIDE = (
    VERSION
    + """
resources:
  net: {type: "OS::Neutron::Net", properties: {name: private}}
  subnet: {type: "OS::Neutron::Subnet", properties: {network: {get_resource: net}, cidr: 198.51.100.0/24}}
  inside: {type: "OS::Neutron::Port", properties: {network: net0}}
  outside: {type: "OS::Neutron::Port", properties: {network: {get_resource: net}}, depends_on: subnet}
  alone:
    type: OS::Nova::Server
    depends_on: subnet
    properties: {name: alone, image: ubuntu, flavor: m1.tiny, networks: [{network: {get_resource: net}}]}
  both:
    type: OS::Nova::Server
    properties:
      name: both
      image: ubuntu
      flavor: m1.tiny
      networks: [{port: {get_resource: outside}}, {port: {get_resource: inside}}]
outputs:
  inside: {value: {get_attr: [inside, fixed_ips, 0, ip_address]}}
"""
)


async def test_servers_outside_of_the_loopback_network_run_and_are_reached_where_they_can_be(client: Client) -> None:
    stack = await client.make_stack("outside", OUTSIDE)
    assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]
    inventory = (await client.call("GET", "/inventory")).body
    assert {one["name"]: one["status"] for one in inventory["servers"]} == {"alone": "ACTIVE", "both": "ACTIVE"}
    machines = {one["name"]: one for one in inventory["machines"]}
    assert [one["powered"] for one in machines.values()] == [True, True]
    assert all(address.startswith("198.51.100.") for address in machines["alone"]["addresses"])
    address = stack["outputs"][0]["output_value"]
    async with asyncssh.connect(
        address, client.lab.ssh_port, username="ubuntu", password="ubuntu", known_hosts=None
    ) as machine:
        shown = str((await machine.run("hostname -I", check=True)).stdout)
    assert shown.split() == machines["both"]["addresses"]
    assert address in shown


async def _host_name(address: str, port: int) -> str:
    async with asyncssh.connect(address, port, username="ubuntu", password="ubuntu", known_hosts=None) as machine:
        return str((await machine.run("hostname", check=True)).stdout)


async def test_a_floating_ip_of_a_server_leads_to_its_machine(client: Client) -> None:
    await client.make_stack("one")
    neutron, port_of_ssh = client.lab.cloud.neutron, client.lab.ssh_port
    (port,) = neutron.ports.values()
    public = next(network for network in neutron.networks.values() if network.name == "public")
    floating = neutron.create_floating_ip(port.project_id, public, port=port)
    await client.lab.cloud.routes.settled()
    assert await _host_name(floating.address, port_of_ssh) == "small\n"
    neutron.associate(floating, None)
    await client.lab.cloud.routes.settled()
    with pytest.raises(OSError):
        await _host_name(floating.address, port_of_ssh)


async def test_a_suspended_server_does_not_answer_until_it_is_resumed(client: Client) -> None:
    stack = await client.make_stack("one")
    address, nova = stack["outputs"][0]["output_value"], client.lab.cloud.nova
    (server,) = nova.servers.values()
    await nova.suspend(server)
    with pytest.raises(OSError):
        await _host_name(address, client.lab.ssh_port)
    await nova.resume(server)
    assert await _host_name(address, client.lab.ssh_port) == "small\n"


async def test_faults_are_added_listed_and_removed(client: Client) -> None:
    rule = {"part": "nova", "verb": "server_boot", "effect": "fail", "message": "broken", "times": 6}
    added = await client.call("POST", "/faults", rule)
    assert added.status == 201
    assert (await client.call("GET", "/faults")).body == [added.body]
    stack = await client.make_stack("one")
    assert "broken" in stack["stack_status_reason"]
    assert (await client.call("DELETE", f"/faults/{added.body['fault_id']}")).status == 204
    assert (await client.call("DELETE", f"/faults/{added.body['fault_id']}")).status == 404
    await client.call("POST", "/faults", rule)
    assert (await client.call("DELETE", "/faults")).status == 204
    assert (await client.call("GET", "/faults")).body == []


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/faults", {"effect": "explode"}, "effect"),
        ("POST", "/faults", {"seconds": "long"}, "seconds"),
        ("POST", "/faults", {"status": 42}, "status"),
        ("POST", "/faults", {"nonsense": 1}, "nonsense"),
        ("PUT", "/quotas", {"instances": "many"}, "instances"),
        ("PUT", "/quotas", {"unicorns": 1}, "unicorns"),
        ("PUT", "/settings", {"server_create_s": -1}, "server_create_s"),
        ("PUT", "/settings", {"weather": 1}, "weather"),
        ("PUT", "/settings", [], ""),
    ],
)
async def test_bad_input_is_refused_naming_its_field(
    client: Client, method: str, path: str, body: Any, field: str
) -> None:
    answer = await client.call(method, path, body)
    assert answer.status == 400
    assert answer.body["error"]["field"] == field
    assert "expected" in answer.body["error"]["message"] or "there are" in answer.body["error"]["message"]


async def test_quotas_and_durations_are_changed_while_it_runs(client: Client) -> None:
    changed = await client.call("PUT", "/quotas", {"instances": 0})
    assert changed.body["instances"] == 0
    assert "Quota exceeded for instances" in (await client.make_stack("one"))["stack_status_reason"]
    await client.call("PUT", "/quotas", {"instances": -1})
    settings = await client.call("PUT", "/settings", {"server_create_s": 0.01})
    assert settings.body["server_create_s"] == 0.01
    assert (await client.make_stack("two"))["stack_status"] == "CREATE_COMPLETE"


async def test_calls_are_counted_and_the_counters_can_be_reset(client: Client) -> None:
    await client.make_stack("one")
    calls = (await client.call("GET", "/calls")).body
    assert {"part": "nova", "verb": "server_create", "node": "small", "count": 1} in calls
    await client.call("DELETE", "/calls")
    assert (await client.call("GET", "/calls")).body == []


async def test_it_is_up(client: Client) -> None:
    assert (await client.call("GET", "/health")).body == {"status": "ok"}


async def test_leaving_the_lab_ends_calls_that_hang_in_it(tmp_path: Path) -> None:
    async with asyncio.timeout(300):
        async with Lab.start(LabSettings(state_dir=tmp_path)) as lab, aiohttp.ClientSession() as session:
            client = Client(lab, session)
            await client.call("POST", "/faults", {"part": "keystone", "verb": "token_create", "effect": "hang"})
            hanging = asyncio.create_task(client.call("POST", f"{lab.auth_url}/auth/tokens", {}))
            await asyncio.wait([hanging], timeout=0.05)
            hanging.cancel()
            await asyncio.wait([hanging])


async def _process(*arguments: str) -> tuple[int, str]:
    """Run the lab's program to its end; return its exit code and its errors."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubevnfm_lab", *arguments,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(300):
        _, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, errors.decode()


async def test_a_state_folder_belongs_to_one_lab_at_a_time(tmp_path: Path) -> None:
    """The end of another lab removed the programs of this one."""
    settings = LabSettings(state_dir=tmp_path)
    async with Lab.start(settings) as lab, aiohttp.ClientSession() as session:
        await Client(lab, session).make_stack("machines")
        with pytest.raises(StateDirInUse, match=str(tmp_path)):
            async with Lab.start(settings):
                pass
        code, errors = await _process("--state-dir", str(tmp_path))
        assert (code, errors) == (
            1,
            f"state folder {tmp_path}: another lab uses it; each lab needs a folder of its own\n",
        )
        assert (tmp_path / "stand-ins/ask").is_file()
    async with Lab.start(settings) as lab, aiohttp.ClientSession() as session:
        stack = await Client(lab, session).make_stack("again")
        assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]


async def test_the_catalogue_takes_further_services(tmp_path: Path) -> None:
    urls = {"nfv-orchestration": "http://127.0.0.1:9890", "object-store": "https://objects.example/v1/{project}"}
    settings = LabSettings(state_dir=tmp_path, cloud=CloudSettings(catalog=urls))
    async with Lab.start(settings) as lab, aiohttp.ClientSession() as session:
        client = Client(lab, session)
        token = (await client.token()).body["token"]
        project = token["project"]["id"]
        found = {entry["type"]: {one["url"] for one in entry["endpoints"]} for entry in token["catalog"]}
        assert found["nfv-orchestration"] == {"http://127.0.0.1:9890"}
        assert found["object-store"] == {f"https://objects.example/v1/{project}"}
        assert found["compute"] == {f"{lab.base_url}/compute/v2.1"}


@pytest.mark.parametrize("entry", ["nfv-orchestration", "=http://x", "a=ftp://x", "a=http://", "compute=http://x"])
async def test_an_entry_of_the_catalogue_that_cannot_be_meant_is_refused(entry: str) -> None:
    code, errors = await _process("--catalog-entry", entry)
    assert code == 2
    assert "--catalog-entry" in errors


async def test_it_runs_as_a_process_that_says_when_it_is_ready_and_ends_at_a_signal(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kubevnfm_lab", "--ready-file", str(ready), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(300):
            endpoints = json.loads(await process.stdout.readline())
        assert json.loads(await asyncio.to_thread(ready.read_text)) == endpoints
        async with aiohttp.ClientSession() as session, session.get(f"{endpoints['control_url']}/health") as answer:
            assert answer.status == web.HTTPOk.status_code
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(300):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
