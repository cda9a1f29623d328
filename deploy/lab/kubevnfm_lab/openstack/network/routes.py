"""The routes of floating addresses: where they lead, as the machines should know."""

from __future__ import annotations

import asyncio
import logging

from kubevnfm_lab.ports import Machines

log = logging.getLogger(__name__)


class FloatingRoutes:
    """Applies changes one by one and after the API's answer, as Neutron's router agents do."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._wanted: dict[str, str | None] = {}
        """Pending changes: fixed address by floating one, None for nowhere; the latest change wins."""
        self._task: asyncio.Task[None] | None = None

    def route(self, floating: str, fixed: str | None) -> None:
        """Let a floating address lead to a fixed one from now on, or nowhere."""
        self._wanted.pop(floating, None)
        self._wanted[floating] = fixed
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._apply_pending(), name="floating routes")

    async def settled(self) -> None:
        """Return once the machines know every change."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop, without applying the remaining changes."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _apply_pending(self) -> None:
        while self._wanted:
            floating = next(iter(self._wanted))
            fixed = self._wanted.pop(floating)
            try:
                if fixed is None:
                    await self._machines.remove_floating(floating)
                else:
                    await self._machines.add_floating(floating, fixed)
            except OSError as error:
                log.warning("floating address %s leads nowhere: %s", floating, error)
