"""Octavia's rules: what a load balancer is made of, what may change when, and that it forwards connections.

Source: the Octavia API v2.0. Balancers are ones of the provider ``amphora``: a machine of Octavia's own, with a port on
the subnet of the virtual address beside the port of that address.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final, TypeVar

from kubevnfm_lab.machines.relay import Relay, Target, close_all, in_turn
from kubevnfm_lab.openstack.balancer.records import Listener, LoadBalancer, Member, Pool, Record
from kubevnfm_lab.openstack.errors import ServiceError, bad_request, conflict, not_found
from kubevnfm_lab.openstack.ids import new_uuid, now_z
from kubevnfm_lab.openstack.network.neutron import Neutron
from kubevnfm_lab.openstack.settings import Durations

log = logging.getLogger(__name__)
SERVICE_PROJECT: Final = "octavia"
"""The project of the balancers' own machines and their ports, which other projects do not see."""
RELAYED: Final = frozenset({"TCP", "HTTP", "HTTPS"})
"""The protocols that a relay of connections serves."""
R = TypeVar("R", bound=Record)


class Octavia:
    """All load balancers of the cloud."""

    def __init__(self, neutron: Neutron, durations: Durations) -> None:
        self._neutron, self._durations = neutron, durations
        self.balancers: dict[str, LoadBalancer] = {}
        self.listeners: dict[str, Listener] = {}
        self.pools: dict[str, Pool] = {}
        self._relays: dict[str, Relay] = {}
        """The socket of each listener whose address this host can bind."""
        self._turns = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._moved = asyncio.Event()

    # -- load balancers

    def create_balancer(
        self, project_id: str, *, subnet_id: str, address: str | None = None, **facts: Any
    ) -> LoadBalancer:
        """Create a load balancer; it is PENDING_CREATE first."""
        subnet = self._neutron.subnets.get(subnet_id)
        if subnet is None:
            raise not_found("octavia", "NotFound", f"Subnet {subnet_id} not found.")
        balancer_id, network = new_uuid(), self._neutron.networks[subnet.network_id]
        asked = {"subnet_id": subnet_id, **({"ip_address": address} if address else {})}
        try:
            vip = self._neutron.create_port(
                project_id,
                network,
                fixed_ips=[asked],
                name=f"octavia-lb-{balancer_id}",
                device_owner="Octavia",
                device_id=f"lb-{balancer_id}",
            )
            amphora = self._neutron.create_port(
                SERVICE_PROJECT,
                network,
                fixed_ips=[{"subnet_id": subnet_id}],
                name=f"octavia-lb-vrrp-{new_uuid()}",
                device_owner="compute:nova",
                device_id=new_uuid(),
            )
        except ServiceError as error:
            message = f"Error creating neutron port on network {network.record_id}: {error.message}"
            raise ServiceError("octavia", 500, "AllocateVIPException", message) from error
        made = LoadBalancer(
            record_id=balancer_id,
            project_id=project_id,
            vip_address=vip.fixed_ips[0].address,
            vip_port_id=vip.record_id,
            vip_subnet_id=subnet_id,
            vip_network_id=network.record_id,
            amphora_port_id=amphora.record_id,
            **facts,
        )
        self.balancers[balancer_id] = made
        self._settle(made)
        return made

    def delete_balancer(self, balancer: LoadBalancer, *, cascade: bool) -> None:
        """Delete a load balancer; with ``cascade`` what it is made of too."""
        if balancer.status not in ("ACTIVE", "ERROR"):
            message = f"Invalid state {balancer.status} of loadbalancer resource {balancer.record_id}"
            raise conflict("octavia", "LBPendingStateError", message)
        if not cascade and (balancer.listener_ids or balancer.pool_ids):
            message = f"Validation failure: Cannot delete Load Balancer {balancer.record_id} - it has children"
            raise bad_request("octavia", message, "ValidationException")
        balancer.status = "PENDING_DELETE"
        self._after(lambda: self._drop_balancer(balancer))

    def _drop_balancer(self, balancer: LoadBalancer) -> None:
        for listener_id in list(balancer.listener_ids):
            self._drop_listener(self.listeners[listener_id])
        for pool_id in list(balancer.pool_ids):
            self._drop_pool(self.pools[pool_id])
        for port_id in (balancer.vip_port_id, balancer.amphora_port_id):
            if (port := self._neutron.ports.get(port_id)) is not None:
                self._neutron.drop_port(port)
        del self.balancers[balancer.record_id]

    # -- listeners, pools, members

    def create_listener(
        self, balancer: LoadBalancer, *, protocol: str, port: int, pool_id: str | None = None, **facts: Any
    ) -> Listener:
        """Create a listener."""
        for one in (self.listeners[listener_id] for listener_id in balancer.listener_ids):
            # TCP and UDP may share a number, as sockets can.
            if one.port == port and (one.protocol == "UDP") == (protocol == "UDP"):
                message = (
                    f"Another Listener on this Load Balancer is already using protocol {protocol} and"
                    f" protocol_port {port}"
                )
                raise conflict("octavia", "DuplicateListenerEntry", message)
        pool = self.pool(pool_id) if pool_id else None
        self.change(balancer)
        made = Listener(
            project_id=balancer.project_id,
            balancer_id=balancer.record_id,
            protocol=protocol,
            port=port,
            pool_id=pool_id,
            **facts,
        )
        self.listeners[made.record_id] = made
        balancer.listener_ids.append(made.record_id)
        if pool is not None:
            pool.listener_ids.append(made.record_id)
        self._settle(made)
        self._listen(balancer, made)
        return made

    def delete_listener(self, listener: Listener) -> None:
        """Delete a listener; its pool stays."""
        self.change(self.balancer(listener.balancer_id))
        listener.status = "PENDING_DELETE"
        self._after(lambda: self._drop_listener(listener))

    def _drop_listener(self, listener: Listener) -> None:
        if self.listeners.pop(listener.record_id, None) is None:
            return
        if (relay := self._relays.pop(listener.record_id, None)) is not None:
            relay.close()
        self.balancers[listener.balancer_id].listener_ids.remove(listener.record_id)
        for pool in self.pools.values():
            if listener.record_id in pool.listener_ids:
                pool.listener_ids.remove(listener.record_id)

    def create_pool(
        self,
        *,
        balancer: LoadBalancer | None = None,
        listener: Listener | None = None,
        protocol: str,
        algorithm: str,
        **facts: Any,
    ) -> Pool:
        """Create a pool, for a listener or for later use."""
        if listener is not None:
            balancer = self.balancer(listener.balancer_id)
            if listener.pool_id is not None:
                raise conflict("octavia", "DuplicatePoolEntry", "This Listener already has a default pool")
        if balancer is None:
            message = "Validation failure: Must provide at least one of: loadbalancer_id, listener_id"
            raise bad_request("octavia", message, "ValidationException")
        self.change(balancer)
        made = Pool(
            project_id=balancer.project_id,
            balancer_id=balancer.record_id,
            protocol=protocol,
            algorithm=algorithm,
            listener_ids=[listener.record_id] if listener is not None else [],
            **facts,
        )
        if listener is not None:
            listener.pool_id = made.record_id
        self.pools[made.record_id] = made
        balancer.pool_ids.append(made.record_id)
        self._settle(made)
        return made

    def delete_pool(self, pool: Pool) -> None:
        """Delete a pool with its members."""
        self.change(self.balancer(pool.balancer_id))
        pool.status = "PENDING_DELETE"
        self._after(lambda: self._drop_pool(pool))

    def _drop_pool(self, pool: Pool) -> None:
        if self.pools.pop(pool.record_id, None) is None:
            return
        self.balancers[pool.balancer_id].pool_ids.remove(pool.record_id)
        for listener_id in pool.listener_ids:
            self.listeners[listener_id].pool_id = None

    def create_member(self, pool: Pool, *, address: str, port: int, **facts: Any) -> Member:
        """Add a target to a pool."""
        if any((one.address, one.port) == (address, port) for one in pool.members.values()):
            message = f"Another member on this pool is already using ip {address} on protocol_port {port}"
            raise conflict("octavia", "DuplicateMemberEntry", message)
        self.change(self.balancer(pool.balancer_id))
        made = Member(project_id=pool.project_id, address=address, port=port, **facts)
        pool.members[made.record_id] = made
        self._settle(made)
        return made

    def delete_member(self, pool: Pool, member: Member) -> None:
        """Take a target out of a pool."""
        self.change(self.balancer(pool.balancer_id))
        member.status = "PENDING_DELETE"
        self._after(lambda: pool.members.pop(member.record_id, None))

    # -- finding

    def find(self, kind: str, name_or_id: str, project_id: str) -> Record | None:
        """Return a record of the project by id or name. ``kind``: loadbalancer, listener or pool."""
        tables: Mapping[str, Mapping[str, Record]] = {
            "loadbalancer": self.balancers,
            "listener": self.listeners,
            "pool": self.pools,
        }
        table = tables[kind]
        named = (one for one in table.values() if one.name == name_or_id and one.project_id == project_id)
        return table.get(name_or_id) or next(named, None)

    def balancer(self, record_id: str) -> LoadBalancer:
        """Return a load balancer; raise Octavia's 404."""
        return _found(self.balancers, record_id, "Load Balancer")

    def listener(self, record_id: str) -> Listener:
        """Return a listener; raise Octavia's 404."""
        return _found(self.listeners, record_id, "Listener")

    def pool(self, record_id: str) -> Pool:
        """Return a pool; raise Octavia's 404."""
        return _found(self.pools, record_id, "Pool")

    def member(self, pool: Pool, record_id: str) -> Member:
        """Return a member of a pool; raise Octavia's 404."""
        return _found(pool.members, record_id, "Member")

    # -- the inside

    def change(self, balancer: LoadBalancer) -> None:
        """Begin a change of a load balancer or a part of it. Raises ServiceError (409) while another one is made."""
        if balancer.status != "ACTIVE":
            message = f"Load Balancer {balancer.record_id} is immutable and cannot be updated."
            raise conflict("octavia", "ImmutableObject", message)
        balancer.status = "PENDING_UPDATE"
        self._settle(balancer)

    def _settle(self, record: Record) -> None:
        def settled() -> None:
            if record.status in ("PENDING_CREATE", "PENDING_UPDATE"):
                record.status = "ACTIVE"
                record.updated_at = now_z().removesuffix("Z")

        self._after(settled)

    def _after(self, work: Callable[[], object]) -> None:
        def move() -> None:
            work()
            self._moved.set()
            self._moved = asyncio.Event()

        asyncio.get_running_loop().call_later(self._durations.balancer_change_s, move)

    async def next_move(self) -> None:
        """Return once something has left its PENDING state."""
        await self._moved.wait()

    def _listen(self, balancer: LoadBalancer, listener: Listener) -> None:
        # An address outside of this host has no socket here: such a balancer exists in the API only.
        if listener.protocol not in RELAYED or not ip_address(balancer.vip_address).is_loopback:
            return
        relay = Relay(balancer.vip_address, listener.port, lambda: self._targets(listener))
        self._relays[listener.record_id] = relay
        task = asyncio.get_running_loop().create_task(self._open(relay))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, relay: Relay) -> None:
        try:
            await relay.open()
        except OSError as error:
            log.warning("no load balancer on %s:%d: %s", relay.address, relay.port, error)

    def _targets(self, listener: Listener) -> Sequence[Target]:
        pool = self.pools.get(listener.pool_id or "")
        targets = [(one.address, one.port) for one in pool.members.values()] if pool is not None else []
        return in_turn(targets, self._turns)

    async def close(self) -> None:
        """Close all sockets."""
        await close_all(self._tasks, self._relays)


def _found(table: dict[str, R], record_id: str, label: str) -> R:
    found = table.get(record_id)
    if found is None:
        raise not_found("octavia", "NotFound", f"{label} {record_id} not found.")
    return found
