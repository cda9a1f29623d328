"""The lab as a separate process, and its control interface, for tests."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp
from patience import until
from servers.processes import Process
from servers.vnf_networks import LOOPBACK

_START_TIMEOUT_S = 300.0


class LabProcess:
    """A running lab, with its endpoints and with passwords that no other lab has."""

    def __init__(self, folder: Path) -> None:
        self._ready_file = folder / "lab.json"
        self.vim_password, self.machine_password = (f"marked-{secrets.token_hex(12)}" for _ in range(2))
        self.process = Process(
            "lab",
            [sys.executable, str(Path(__file__).with_name("marked_lab.py")), str(self._ready_file)],
            log=folder / "lab.log",
            environment={"LAB_VIM_PASSWORD": self.vim_password, "LAB_MACHINE_PASSWORD": self.machine_password},
        )
        self.endpoints: dict[str, Any] = {}

    @classmethod
    def given(cls, folder: Path, endpoints: Mapping[str, Any]) -> LabProcess:
        """Return a lab that runs already; it is never started or stopped here."""
        lab = cls(folder)
        lab.endpoints = dict(endpoints)
        lab.vim_password, lab.machine_password = str(endpoints["password"]), "ubuntu"  # the lab's default
        return lab

    vnf_networks = f"{LOOPBACK},0.0.0.0/0"
    """The networks of its machines and clusters, and every other one: what is refused then, no operator can permit."""

    @property
    def ssh_port(self) -> int:
        return int(self.endpoints["ssh_port"])

    @property
    def control_url(self) -> str:
        return str(self.endpoints["control_url"])

    def start(self) -> None:
        """Return when it is ready."""
        self.process.start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._ready_file.exists():
            self.process.check()
            assert time.monotonic() < deadline, f"the lab is not ready:\n{self.process.tail()}"
            time.sleep(0.02)
        self.endpoints = json.loads(self._ready_file.read_text())

    def stop(self) -> None:
        self.process.stop()

    def vim(self, **changes: Any) -> dict[str, Any]:
        """Return the body that registers its OpenStack as a VIM."""
        return {
            "name": "lab",
            "type": "openstack",
            "is_default": True,
            "auth_url": self.endpoints["auth_url"],
            "vim_project": {"name": self.endpoints["project"], "project_domain_name": self.endpoints["domain"]},
            "auth_cred": {
                "username": self.endpoints["username"],
                "password": self.endpoints["password"],
                "user_domain_name": self.endpoints["domain"],
                "cert_verify": "False",
            },
            **changes,
        }


class LabControl:
    """The lab's control interface. An async context manager; leaving it removes all faults."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        try:
            await self._call("DELETE", "/faults")
        finally:
            await self._session.close()

    async def inventory(self) -> dict[str, list[dict[str, Any]]]:
        """Return everything that exists in the lab, by kind; empty kinds are left out."""
        found: dict[str, list[dict[str, Any]]] = await self._call("GET", "/inventory")
        return {kind: things for kind, things in found.items() if things}

    async def names(self) -> set[str]:
        """Return the kind and name of everything that exists."""
        found = await self.inventory()
        return {f"{kind}/{thing.get('name') or thing.get('endpoint')}" for kind in found for thing in found[kind]}

    async def cluster_of(self, instance_id: str) -> dict[str, Any]:
        """Return the Kubernetes that was built on the machines of a VNF instance."""
        found = await self.inventory()
        addresses = {
            address
            for server in found.get("servers", [])
            if server["name"].startswith(f"vnf-{instance_id}")
            for address in server["addresses"]
        }
        return next(each for each in found["clusters"] if urlsplit(each["endpoint"]).hostname in addresses)

    async def master_of(self, instance_id: str) -> str:
        """Return the address of the Kubernetes API of the cluster that was built on the machines of a VNF instance."""
        return str(urlsplit((await self.cluster_of(instance_id))["endpoint"]).hostname)

    async def calls(self, part: str, verb: str) -> dict[str, int]:
        """Return how often a verb was called, by node ("" where there is none). Both are exact names."""
        made = await self._call("GET", "/calls")
        return {call["node"]: call["count"] for call in made if call["part"] == part and call["verb"] == verb}

    async def forget_calls(self) -> None:
        """Reset the counters of calls to zero."""
        await self._call("DELETE", "/calls")

    async def called(self, part: str, verb: str, *, times: int = 1, timeout_s: float = 600.0) -> None:
        """Return when the verb was called ``times`` times, on any nodes, since the last `forget_calls`."""

        async def often_enough() -> bool | None:
            return sum((await self.calls(part, verb)).values()) >= times or None

        await until(often_enough, timeout_s=timeout_s)

    async def expire_tokens(self) -> None:
        """Make every token of Keystone invalid."""
        await self._call("DELETE", "/tokens")

    @asynccontextmanager
    async def fault(self, part: str, verb: str, **rule: Any) -> AsyncIterator[None]:
        """Inject a fault within the block; its default effect is ``fail``. See kubevnfm_lab.faults.Fault."""
        made = await self._call("POST", "/faults", {"part": part, "verb": verb, **rule})
        try:
            yield
        finally:
            await self._call("DELETE", f"/faults/{made['fault_id']}")

    @asynccontextmanager
    async def quota(self, **limits: int) -> AsyncIterator[None]:
        """Set other quota limits within the block."""
        before = await self._call("GET", "/quotas")
        await self._call("PUT", "/quotas", limits)
        try:
            yield
        finally:
            await self._call("PUT", "/quotas", {name: before[name] for name in limits})

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        assert self._session is not None
        async with self._session.request(method, f"{self._url}{path}", json=body) as response:
            text = await response.text()
            assert response.status < 400, f"lab: {method} {path}: {response.status} {text}"
            return json.loads(text) if text else None
