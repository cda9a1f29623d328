"""Starts and stops servers: only those that are not in the wanted state yet are sent an action."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events.stacks import OperateServers, ServersOperated
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext, nothing_made

from kubevnfm_infra_openstack.domain.errors import ServerNotOperable
from kubevnfm_infra_openstack.domain.grace import GracePeriods
from kubevnfm_infra_openstack.domain.ports import POLL_PAUSES_S, Clouds, ServerPort

log = structlog.get_logger()

_WANTED: Final = {"STARTED": "ACTIVE", "STOPPED": "SHUTOFF"}
_OPPOSITE: Final = {"STARTED": "SHUTOFF", "STOPPED": "ACTIVE"}
_PASSING: Final = frozenset({"BUILD", "HARD_REBOOT", "MIGRATING", "REBOOT", "REBUILD"})
"""Others are at work on the server, for example with a reboot: it is ACTIVE or SHUTOFF soon."""
_AGAIN_S: Final = 2.0


@dataclass(frozen=True)
class ServerHandlers:
    """Starts and stops the servers of VNFs."""

    clouds: Clouds
    vims: VimDirectory
    grace: GracePeriods

    async def operate_servers(self, command: OperateServers, context: StepContext) -> Outcome:
        """Bring every server to the state. Raises ServerNotOperable for one that is in a third state, or missing.

        With ``existing_only`` missing servers are left out.
        """
        wait = await self.grace.wait(context, timedelta(seconds=command.graceful_wait_s))
        if wait is not None:
            return wait
        with nothing_made():
            servers = self.clouds.cloud(await self.vims.connection(command.vim)).servers
        begun: set[str] = set()
        for pause_s in POLL_PAUSES_S:
            await asyncio.sleep(pause_s)
            with nullcontext() if begun else nothing_made():
                left = await self._left(servers, command)
            if not left:
                if command.graceful_wait_s > 0:
                    await self.grace.end(context)
                log.info("servers_operated", state=command.state, servers=len(command.servers))
                return Done(ServersOperated(servers=command.servers, state=command.state))
            act = servers.start if command.state == "STARTED" else servers.stop
            for server_id, status in left.items():
                # Once in a call: Nova needs a moment to show the new state, and rejects an action until then.
                if server_id not in begun and status not in _PASSING:
                    await act(server_id)
                    begun.add(server_id)
        return NotYet(_AGAIN_S)

    async def _left(self, servers: ServerPort, command: OperateServers) -> Mapping[str, str]:
        """Return the states of the servers that are not in the wanted one yet."""
        statuses = await servers.statuses(command.servers)
        concerned = [one for one in command.servers if one in statuses or not command.existing_only]
        for server_id in concerned:
            status = statuses.get(server_id, "no such server")
            if status not in {_WANTED[command.state], _OPPOSITE[command.state], *_PASSING}:
                # PAUSED, ERROR and the like need an operator's decision.
                raise ServerNotOperable(
                    f"server {server_id}: state {_OPPOSITE[command.state]} expected, found {status}"
                )
        return {one: statuses[one] for one in concerned if statuses[one] != _WANTED[command.state]}
