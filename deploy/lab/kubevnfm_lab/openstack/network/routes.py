"""Tells the machines where floating addresses lead."""

from __future__ import annotations

import asyncio
import logging

from kubevnfm_lab.ports import Machines

log = logging.getLogger(__name__)


class FloatingRoutes:
    """One change after the other and after the API's answer, as Neutron's router agents do it."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._wanted: dict[str, str | None] = {}
        """What is not told yet: fixed address by floating one, None for nowhere; the latest counts."""
        self._task: asyncio.Task[None] | None = None

    def lead(self, floating: str, fixed: str | None) -> None:
        """Let a floating address lead to a fixed one from now on, or nowhere."""
        self._wanted.pop(floating, None)
        self._wanted[floating] = fixed
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._tell(), name="floating routes")

    async def settled(self) -> None:
        """Return once the machines were told everything."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Tell nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _tell(self) -> None:
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
