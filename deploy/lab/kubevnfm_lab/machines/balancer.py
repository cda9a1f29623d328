"""haproxy and keepalived on the masters: which machine holds a virtual address, and where its connections go."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from kubevnfm_lab.machines.controlplanes import API_PORT, ControlPlanes
from kubevnfm_lab.machines.lb_config import BadConfiguration, parse_haproxy, parse_keepalived
from kubevnfm_lab.machines.machine import Machine
from kubevnfm_lab.machines.relay import Relay, Target, close_all, in_turn

log = logging.getLogger(__name__)


class Balancer:
    """Keeps the sockets of all masters' haproxies open, and moves virtual addresses."""

    def __init__(self, machines: Callable[[], Iterable[Machine]], control_planes: ControlPlanes) -> None:
        self._machines, self._control_planes = machines, control_planes
        self._relays: dict[tuple[str, int], Relay] = {}
        self._targets: dict[tuple[str, int], list[Target]] = {}
        self._holders: dict[str, Machine] = {}
        self._turns = itertools.count()
        self._lock = asyncio.Lock()
        self._stale = False
        self._tasks: set[asyncio.Task[None]] = set()

    def changed(self) -> None:
        """Schedule an update; called whenever a service or a machine starts or stops."""
        self._stale = True
        if all(task.done() for task in self._tasks):
            task = asyncio.get_running_loop().create_task(self._settle_while_stale())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _settle_while_stale(self) -> None:
        # A change while sockets are being opened comes after the configurations were read: it needs another run.
        while self._stale:
            self._stale = False
            await self.settle()

    def elect(self) -> Mapping[str, Machine]:
        """Return the machine that holds each virtual address from now on.

        The one with the highest priority of those that run; a holder stays if it is set not to give way (nopreempt).
        """
        best: dict[str, tuple[int, Machine]] = {}
        staying: dict[str, Machine] = {}
        for machine in self._machines():
            file = machine.root / "etc/keepalived/keepalived.conf"
            if not (machine.powered and machine.units.is_active("keepalived") and file.exists()):
                continue
            for instance in parse_keepalived(file.read_text()):
                if instance.is_tracked and not machine.units.is_active("haproxy"):
                    continue
                for address in instance.addresses:
                    if self._holders.get(address) is machine and not instance.preempts:
                        staying[address] = machine
                    # VRRP elects the highest priority; a tie goes to the machine that booted first.
                    if address not in best or instance.priority > best[address][0]:
                        best[address] = instance.priority, machine
        self._holders = {address: machine for address, (_, machine) in best.items()} | staying
        return self._holders

    def resolve(self, host: str, port: int) -> Sequence[Target]:
        """Return the targets behind an address and port of a balancer; empty if none listens there."""
        return self._targets.get((host, port), [])

    async def settle(self) -> None:
        """Open and close sockets until they match the services' configurations."""
        async with self._lock:
            wanted = self._wanted()
            for place in [place for place in self._relays if place not in wanted]:
                self._relays.pop(place).close()
            self._targets = wanted
            for place in wanted:
                if place not in self._relays:
                    relay = Relay(*place, lambda place=place: self._in_turn(place))  # type: ignore[misc]
                    try:
                        await relay.open()
                    except OSError as error:
                        log.warning("cannot listen on %s:%d: %s", *place, error)
                        continue
                    self._relays[place] = relay

    def _wanted(self) -> dict[tuple[str, int], list[Target]]:
        wanted: dict[tuple[str, int], list[Target]] = {}
        holders = self.elect()
        for machine in self._machines():
            if not machine.powered:
                continue
            virtual = [address for address, holder in holders.items() if holder is machine]
            if virtual and self._control_planes.served_by(machine):
                own = [(address, API_PORT) for address in machine.listening_addresses]
                wanted.update({(address, API_PORT): own for address in virtual})
            file = machine.root / "etc/haproxy/haproxy.cfg"
            if not (machine.units.is_active("haproxy") and file.exists()):
                continue
            try:
                frontends = parse_haproxy(file.read_text())
            except BadConfiguration:
                continue  # A running haproxy keeps the configuration that it read before; one that restarted has none.
            for frontend in frontends:
                for host, port in frontend.binds:
                    hosts = [*machine.listening_addresses, *virtual] if host in ("*", "0.0.0.0", "::") else [host]
                    wanted.update({(each, port): frontend.servers for each in hosts})
        return wanted

    def _in_turn(self, place: tuple[str, int]) -> Sequence[Target]:
        targets = self._targets.get(place, [])
        return in_turn(targets, self._turns)

    async def close(self) -> None:
        """Close all sockets."""
        await close_all(self._tasks, self._relays)
