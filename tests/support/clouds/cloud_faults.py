"""Faults of a cloud for end-to-end tests: injected into the lab, or made on a real cloud by the project's user.

A user cannot stop Heat, Keystone, or all tokens at once. For these, ``$KUBEVNFM_E2E_SERVICES`` names a command (with
arguments) that the tests call with two more: ``stop heat``, ``start heat``, ``stop keystone``, ``start keystone``, or
``expire tokens``. It returns 0 when that is done; ``start`` when the service answers again. `CloudFaults.can_stop_services`
says whether it is set.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import pytest
from callers.user import User
from openstack import exceptions as sdk
from openstack.connection import Connection
from patience import until
from real.real_cloud import RealCloud, connected

from clouds.lab_process import LabControl

CloudService = Literal["heat", "keystone"]
_COMMAND: Final = os.environ.get("KUBEVNFM_E2E_SERVICES", "")
_REAL_OUTAGE_S: Final = 60.0
_COMMAND_S: Final = 300.0


class CloudFaults:
    """The faults of one cloud, and the acts of a person who uses it directly."""

    def __init__(self, lab: LabControl | RealCloud, cloud: Connection) -> None:
        self._lab, self._cloud = lab, cloud

    @classmethod
    async def from_user(cls, user: User, lab: LabControl | RealCloud) -> CloudFaults:
        """Return the faults of the cloud that the user has registered."""
        return cls(lab, await asyncio.to_thread(connected, user.installation.lab.vim()))

    @property
    def can_stop_services(self) -> bool:
        """Whether services can be stopped, and tokens expired."""
        return bool(_COMMAND) or not isinstance(self._lab, RealCloud)

    async def delete_stack(self, instance_id: str, *, waits: bool = True) -> None:
        """Delete the stack of an instance by Heat's API; ``waits``: return when Heat has none."""
        name = f"vnf-{instance_id}"
        stack = await asyncio.to_thread(self._cloud.orchestration.find_stack, name)
        assert stack is not None, f"Heat has no stack {name}"
        await asyncio.to_thread(self._cloud.orchestration.delete_stack, stack.id)
        if not waits:
            return

        async def is_gone() -> bool | None:
            return await self.stack_status(instance_id) in {None, "DELETE_COMPLETE"} or None

        await until(is_gone)

    async def stack_status(self, instance_id: str) -> str | None:
        """Return Heat's status of the instance's stack; None if there is none."""
        try:
            stack = await asyncio.to_thread(self._cloud.orchestration.find_stack, f"vnf-{instance_id}")
        except sdk.NotFoundException:
            return None
        return None if stack is None else str(stack.status)

    async def delete_server(self, server_id: str) -> None:
        """Delete a server by Nova's API; return when it is gone."""
        await asyncio.to_thread(self._cloud.compute.delete_server, server_id)

        async def is_gone() -> bool | None:
            return await asyncio.to_thread(self._cloud.compute.find_server, server_id) is None or None

        await until(is_gone)

    @asynccontextmanager
    async def slow_boots(self) -> AsyncIterator[None]:
        """Hold up new servers within the block; a real cloud is slow enough by itself."""
        if isinstance(self._lab, RealCloud):
            yield
            return
        async with self._lab.fault("nova", "server_boot", effect="hang"):
            yield

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        """Leave no room for another port within the block."""
        if not isinstance(self._lab, RealCloud):
            used = len(list(await asyncio.to_thread(self._ports)))
            async with self._lab.quota(port=used):
                yield
            return
        made = await asyncio.to_thread(self._fill)
        try:
            yield
        finally:
            for port_id in made:
                await asyncio.to_thread(self._cloud.network.delete_port, port_id)

    @asynccontextmanager
    async def stopped(self, service: CloudService) -> AsyncIterator[None]:
        """Stop the service within the block, on a real cloud for a minute at least."""
        if not isinstance(self._lab, RealCloud):
            async with self._lab.fault(service, "*", effect="drop"):
                yield
            return
        loop = asyncio.get_running_loop()
        await _call("stop", service)
        until = loop.time() + _REAL_OUTAGE_S
        try:
            yield
            await asyncio.sleep(max(0.0, until - loop.time()))
        finally:
            await _call("start", service)

    async def expire_tokens(self) -> None:
        """Make every token of Keystone invalid."""
        if isinstance(self._lab, RealCloud):
            await _call("expire", "tokens")
        else:
            await self._lab.expire_tokens()

    def _ports(self) -> list[Any]:
        return list(self._cloud.network.ports(project_id=self._cloud.current_project_id))

    def _fill(self) -> list[str]:
        quota = self._cloud.network.get_quota(str(self._cloud.current_project_id), details=True)
        limit, used = int(quota.ports["limit"]), int(quota.ports["used"])
        if limit < 0:
            pytest.skip("the project has no quota of ports")
        network = self._cloud.network.find_network("net0")
        assert network is not None
        # Without addresses, so that a small subnet is enough.
        ports = [{"network_id": network.id, "name": "fills-the-quota", "fixed_ips": []} for _ in range(limit - used)]
        return [port.id for port in self._cloud.network.create_ports(ports)] if ports else []


async def _call(verb: str, what: str) -> None:
    assert _COMMAND, "KUBEVNFM_E2E_SERVICES is not set: no command stops the cloud's services"
    process = await asyncio.create_subprocess_exec(*shlex.split(_COMMAND), verb, what)
    async with asyncio.timeout(_COMMAND_S):
        assert await process.wait() == 0, f"{_COMMAND} {verb} {what} failed"
