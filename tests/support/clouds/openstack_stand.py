"""A test bench for the lab's cloud: the cloud, a stand-in for its machines, and a client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.openstack.cloud import Cloud
from kubevnfm_lab.openstack.orchestration.stack import Stack
from kubevnfm_lab.openstack.settings import CloudSettings
from kubevnfm_lab.ports import MachineSpec

Json = dict[str, Any]


class MachinesTwin:
    """Records the machines, refuses a second one at the same address, as sshd does, and fails on request."""

    def __init__(self) -> None:
        self.specs: dict[str, MachineSpec] = {}
        self.off: set[str] = set()
        self.fails_to_boot: str | None = None
        self.boots: list[str] = []
        self.fixed_by_floating: dict[str, str] = {}

    async def boot(self, spec: MachineSpec) -> None:
        if self.fails_to_boot is not None:
            raise OSError(self.fails_to_boot)
        listening = {
            nic.address for machine_id, s in self.specs.items() if machine_id not in self.off for nic in s.nics
        }
        for nic in spec.nics:
            if nic.address in listening:
                raise OSError(f"{nic.address} is in use")
        self.specs[spec.machine_id] = spec
        self.boots.append(spec.name)

    async def destroy(self, machine_id: str) -> None:
        self.specs.pop(machine_id, None)
        self.off.discard(machine_id)

    async def stop(self, machine_id: str) -> None:
        assert machine_id in self.specs
        self.off.add(machine_id)

    async def start(self, machine_id: str) -> None:
        self.off.discard(machine_id)

    async def add_floating(self, floating: str, fixed: str) -> None:
        self.fixed_by_floating[floating] = fixed

    async def remove_floating(self, floating: str) -> None:
        self.fixed_by_floating.pop(floating, None)

    def console_log(self, machine_id: str) -> str:
        return f"booting {self.specs[machine_id].name}\nready\n"

    def inventory(self) -> Sequence[Mapping[str, Any]]:
        return [{"id": spec.machine_id, "name": spec.name} for spec in self.specs.values()]


class Stand:
    """One cloud under test."""

    def __init__(
        self,
        cloud: Cloud,
        machines: MachinesTwin,
        faults: FaultBook,
        ledger: CallLedger,
        base_url: str,
        session: aiohttp.ClientSession,
    ) -> None:
        self.cloud, self.machines, self.faults, self.ledger = cloud, machines, faults, ledger
        self.base_url, self.session = base_url, session
        self.token = ""
        self.project_id = ""

    @property
    def auth_url(self) -> str:
        return f"{self.base_url}/identity/v3"

    @property
    def heat(self) -> str:
        return f"/orchestration/v1/{self.project_id}"

    @property
    def cinder(self) -> str:
        return f"/volume/v3/{self.project_id}"

    async def log_in(self, username: str = "nfv", password: str = "nfv", project: str = "nfv") -> None:
        body = {
            "auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {"user": {"name": username, "domain": {"name": "Default"}, "password": password}},
                },
                "scope": {"project": {"name": project, "domain": {"name": "Default"}}},
            }
        }
        async with self.session.post(f"{self.auth_url}/auth/tokens", json=body) as answer:
            assert answer.status == 201, await answer.text()
            self.token = answer.headers["X-Subject-Token"]
            self.project_id = (await answer.json())["token"]["project"]["id"]

    async def call(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, data: Any = None
    ) -> Answer:
        """Send a request; ``path`` is relative to the cloud's root, or an absolute URL."""
        url = path if path.startswith("http") else self.base_url + path
        sent = {"X-Auth-Token": self.token, **(headers or {})}
        options: Json = {"data": data} if data is not None else {"json": body} if body is not None else {}
        async with self.session.request(method, url, headers=sent, allow_redirects=False, **options) as answer:
            is_json = answer.content_type == "application/json"
            text = await answer.text()
            parsed = await answer.json() if is_json and text else text
            return Answer(answer.status, answer.content_type, dict(answer.headers), parsed)

    async def get(self, path: str) -> Any:
        """Return the body of a GET that must succeed."""
        answer = await self.call("GET", path)
        assert answer.status == 200, answer
        return answer.body

    async def begin_stack(self, name: str, template: Any, **more: Any) -> str:
        """Post a stack and return its path."""
        answer = await self.call("POST", f"{self.heat}/stacks", {"stack_name": name, "template": template, **more})
        assert answer.status == 201, answer
        return str(answer.headers["Location"]).removeprefix(self.base_url)

    async def make_stack(self, name: str, template: Any, **more: Any) -> Json:
        """Post a stack and return it once it is settled."""
        return await self.settled(await self.begin_stack(name, template, **more))

    async def update_stack(self, path: str, **body: Any) -> Json:
        """Patch a stack and return it once it is settled."""
        answer = await self.call("PATCH", path, body)
        assert answer.status == 202, answer
        return await self.settled(path)

    async def delete_stack(self, path: str) -> Json:
        answer = await self.call("DELETE", path)
        assert answer.status == 204, answer
        return await self.settled(path)

    async def settled(self, path: str) -> Json:
        """Return a stack once neither it nor a nested stack is in progress."""
        stack = self.stack(path)
        while tasks := [one.task for one in stack.walk() if one.task is not None and not one.task.done()]:
            await asyncio.wait(tasks)
        shown: Json = (await self.get(path))["stack"]
        return shown

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until the condition holds; fail after ten seconds."""
        async with asyncio.timeout(300):
            while not holds():  # noqa: ASYNC110  # it waits for the loop's other tasks, not for time
                await asyncio.sleep(0)

    def stack(self, path: str) -> Stack:
        found = self.cloud.engine.by_id(self.project_id, path.rsplit("/", 1)[1])
        assert found is not None
        return found

    async def resources(self, path: str, depth: int = 5) -> list[Json]:
        listed: list[Json] = (await self.get(f"{path}/resources?nested_depth={depth}"))["resources"]
        return listed

    def left(self) -> Json:
        """Return the resources that users created: the non-empty parts of the inventory, with their counts."""
        inventory = {**self.cloud.inventory(), "machines": self.machines.inventory()}
        return {part: len(things) for part, things in inventory.items() if things}


class Answer:
    """A response of the cloud, whatever its status."""

    def __init__(self, status: int, content_type: str, headers: Mapping[str, str], body: Any) -> None:
        self.status, self.content_type, self.headers, self.body = status, content_type, headers, body

    def __repr__(self) -> str:
        return f"{self.status} {self.body}"


def path_of(stack: Json) -> str:
    """Return a shown stack's path."""
    return "/" + str(stack["links"][0]["href"]).split("/", 3)[3]


@asynccontextmanager
async def standing(settings: CloudSettings) -> AsyncIterator[Stand]:
    """Yield a stand with a fresh cloud, logged in."""
    machines, faults, ledger = MachinesTwin(), FaultBook(), CallLedger()
    cloud = Cloud(settings, machines=machines, faults=faults, ledger=ledger)
    app = web.Application(client_max_size=64 << 20)
    cloud.serve_on(app)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        cloud.reached_at(base_url)
        async with aiohttp.ClientSession() as session:
            stand = Stand(cloud, machines, faults, ledger, base_url, session)
            await stand.log_in()
            yield stand
    finally:
        faults.clear()
        await cloud.close()
        await runner.cleanup()
