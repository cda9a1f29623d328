"""Machines by SSH, whose library is imported when the first one is reached: it takes a tenth of the start of all services."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

from kubevnfm_clients.vnf_networks import VnfNetworks

from kubevnfm_mgmt_executor.domain.ports import Address, HostKeys, Login, Machine, Machines, Waits

if TYPE_CHECKING:
    from kubevnfm_mgmt_executor.adapters.ssh import SshMachines


class LateSshMachines:
    """``SshMachines`` (``adapters.ssh``), with its parameters."""

    def __init__(self, host_keys: HostKeys, networks: VnfNetworks, *, port: int) -> None:
        self._host_keys, self._networks, self._port = host_keys, networks, port
        self._machines: Machines | None = None

    async def reach(self, address: Address, login: Login, *, within_s: float, waits: Waits | None = None) -> Machine:
        """Return a session once the machine accepts the login. Raises as ``Machines.reach``."""
        if self._machines is None:
            # In a thread: the loop serves others meanwhile.
            module = await asyncio.to_thread(importlib.import_module, "kubevnfm_mgmt_executor.adapters.ssh")
            made: type[SshMachines] = module.SshMachines
            self._machines = made(self._host_keys, self._networks, port=self._port)
        return await self._machines.reach(address, login, within_s=within_s, waits=waits)
