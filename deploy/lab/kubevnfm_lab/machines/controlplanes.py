"""Which machines run which cluster's control plane, and how its API server is reached through them.

A cluster whose endpoint is an address of its first master has its API server there. If the endpoint is a virtual address,
the API server has an address of the lab's own, and every master relays its port 6443 to it: so the first master can stop
while the others serve on. etcd's majority rule holds: with fewer than half of its members alive, nothing answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from kubevnfm_lab.machines.machine import Machine
from kubevnfm_lab.machines.relay import Relay, Target
from kubevnfm_lab.ports import Cluster, Clusters

API_PORT = 6443
CERTIFICATE_KEY_LIFE_S = 2 * 3600
"""kubeadm deletes the Secret kubeadm-certs after two hours (kubeadm init phase upload-certs)."""
REFUSALS = 2
"""How many calls of ``kubectl exec`` a kubelet refuses after its machine has started: it asks the API whether a caller may."""
OWN_NETWORK = "127.254"
"""Network of the API servers behind virtual addresses; no lab network assigns addresses there."""

log = logging.getLogger(__name__)


@runtime_checkable
class SuspendingClusters(Protocol):
    """Clusters whose API server can be stopped and started with all its objects, like that of a powered-off master."""

    async def suspend_at(self, address: str) -> None:
        """Stop serving on the address; keep all objects."""
        ...

    async def resume_at(self, address: str) -> None:
        """Serve there again."""
        ...


@dataclass
class Member:
    """One etcd member: a control-plane machine that joined and was not removed."""

    machine: Machine
    node_name: str
    member_id: str = field(default_factory=lambda: secrets.token_hex(8))
    alive: bool = True
    refusals: int = 0
    """How many more calls of ``kubectl exec`` its kubelet refuses."""


@dataclass
class ControlPlane:
    """One cluster and the machines that serve it."""

    cluster: Cluster
    address: str
    """Where the API server itself listens."""
    endpoint: str
    """``host:port`` as all nodes and users reach it (controlPlaneEndpoint)."""
    settings: dict[str, str]
    """The content of kubeadm-config: podSubnet, serviceSubnet, kubernetesVersion."""
    members: dict[str, Member] = field(default_factory=dict)
    """By machine id."""
    certificate_key: tuple[str, float] = ("", 0.0)
    """The key of the last upload, and when it expires (time.monotonic): each upload replaces the one before."""
    tokens: dict[str, float] = field(default_factory=dict)
    """When each bootstrap token that kubeadm made expires (time.time)."""
    relays: dict[str, list[Relay]] = field(default_factory=dict)
    """By machine id."""

    @property
    def has_quorum(self) -> bool:
        """Return whether more than half of the etcd members are alive."""
        return sum(member.alive for member in self.members.values()) > len(self.members) / 2

    def add_certificate_key(self, key: str | None = None) -> str:
        """Upload the certificates under a key, which is new unless given."""
        key = key or secrets.token_hex(32)
        self.certificate_key = key, time.monotonic() + CERTIFICATE_KEY_LIFE_S
        return key

    def accepts_certificate_key(self, key: str) -> bool:
        """Return whether certificates can be fetched with this key now."""
        uploaded, expires = self.certificate_key
        return key == uploaded and expires > time.monotonic()

    def create_token(self, ttl_s: float) -> str:
        """Create a bootstrap token; 0 s means that it never expires."""
        # Ten years stand for "never expires", which the token's Secret cannot express.
        token = self.cluster.create_bootstrap_token(ttl_s=ttl_s or 10 * 365 * 86400)
        self.tokens[token] = time.time() + ttl_s if ttl_s else 0.0
        return token


class ControlPlanes:
    """All control planes of the lab, by the machines that serve them."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._all: list[ControlPlane] = []
        self._numbers = itertools.count(1)
        self.on_change: Callable[[], None] = lambda: None
        """Called when a machine starts or stops to serve an API; the balancer uses it."""

    def served_by(self, machine: Machine) -> ControlPlane | None:
        """Return the control plane that the machine serves."""
        return next((plane for plane in self._all if machine.spec.machine_id in plane.members), None)

    def serving(self, address: str) -> ControlPlane | None:
        """Return the control plane that currently answers on port 6443 of a machine's address."""
        for plane in self._all:
            for member in plane.members.values():
                if member.alive and address in member.machine.addresses:
                    return plane if plane.has_quorum else None
        return None

    def targets(self, plane: ControlPlane) -> Sequence[Target]:
        """Return where the API server listens; empty without a majority of etcd members."""
        return [(plane.address, API_PORT)] if plane.has_quorum else []

    async def create(
        self,
        machine: Machine,
        *,
        node_name: str,
        address: str,
        endpoint: str,
        settings: dict[str, str],
        san: Sequence[str],
    ) -> ControlPlane:
        """Start the API server for a first master; raise OSError if its port is taken."""
        # The certificate must contain every name by which clients may reach the API.
        host = endpoint.rpartition(":")[0]
        names = list(dict.fromkeys([*machine.addresses, host, "127.0.0.1", "localhost", node_name, *san]))
        wanted = host if host in machine.addresses else address if not host or host == node_name else ""
        # This host cannot bind some addresses; the API server then gets one of the lab's own.
        serving = wanted if wanted in machine.listening_addresses else ""
        cluster, serving = await self._start(serving, settings, names)
        plane = ControlPlane(cluster, serving, endpoint or f"{address}:{API_PORT}", settings)
        self._all.append(plane)
        try:
            await self.join(plane, machine, node_name)
        except asyncio.CancelledError:
            # kubeadm was killed before it wrote a file, so no later reset would find what it left.
            await self.leave(machine)
            raise
        return plane

    async def _start(self, serving: str, settings: dict[str, str], san: list[str]) -> tuple[Cluster, str]:
        async def start_at(address: str) -> Cluster:
            return await self._clusters.create(
                address=address,
                port=API_PORT,
                version=settings["kubernetesVersion"],
                pod_cidr=settings["podSubnet"],
                service_cidr=settings["serviceSubnet"],
                san=[*san, address],
            )

        if serving:
            return await start_at(serving), serving
        while True:
            number = next(self._numbers)
            own = f"{OWN_NETWORK}.{number // 250 % 250}.{number % 250 + 1}"
            try:
                return await start_at(own), own
            except OSError:
                # Hundreds of taken addresses mean another problem, such as a lack of file descriptors.
                if number > 1000:
                    raise
                # Another lab on this host uses the address; the next one is as good.

    async def join(self, plane: ControlPlane, machine: Machine, node_name: str) -> None:
        """Make a machine a member: API server on each of its addresses, and etcd."""
        plane.members[machine.spec.machine_id] = Member(machine, node_name)
        await self._serve(plane, machine)

    async def _serve(self, plane: ControlPlane, machine: Machine) -> None:
        relays = plane.relays.setdefault(machine.spec.machine_id, [])
        for address in machine.listening_addresses:
            # The API server itself listens at its own address.
            if address != plane.address:
                relay = Relay(address, API_PORT, lambda: self.targets(plane))
                try:
                    await relay.open()
                except OSError as error:
                    log.warning("port %d of %s is taken: %s", API_PORT, address, error)
                    continue
                relays.append(relay)
        self.on_change()

    async def leave(self, machine: Machine) -> None:
        """Remove a machine as kubeadm reset does: its etcd member goes too."""
        plane = self.served_by(machine)
        if plane is None:
            return
        self._stop_serving(plane, machine)
        del plane.members[machine.spec.machine_id]
        # A cluster ends with the machine that its API server is on.
        if not plane.members or plane.address in machine.addresses:
            await self._end(plane)

    def remove_member(self, plane: ControlPlane, member_id: str) -> bool:
        """Remove an etcd member by its hexadecimal id; return False if there is none."""
        for machine_id, member in plane.members.items():
            # etcdctl prints member ids without leading zeros.
            if member.member_id.lstrip("0") == member_id.lower().lstrip("0"):
                # Its etcd ends, and so its API server answers no longer.
                self._stop_serving(plane, member.machine)
                del plane.members[machine_id]
                return True
        return False

    async def machine_gone(self, machine: Machine) -> None:
        """Record that a machine was destroyed: its etcd member stays listed, dead, until an operator removes it."""
        plane = self.served_by(machine)
        if plane is None:
            return
        self._stop_serving(plane, machine)
        plane.members[machine.spec.machine_id].alive = False
        self._stop_without_majority(plane)
        if plane.address in machine.addresses or not any(member.alive for member in plane.members.values()):
            await self._end(plane)

    async def machine_off(self, machine: Machine) -> None:
        """Record that a machine was powered off."""
        plane = self.served_by(machine)
        if plane is None:
            return
        # Without a way to suspend the cluster its end is the closest approximation.
        if plane.address in machine.addresses and not isinstance(self._clusters, SuspendingClusters):
            await self.machine_gone(machine)
            return
        self._stop_serving(plane, machine)
        plane.members[machine.spec.machine_id].alive = False
        self._stop_without_majority(plane)
        if plane.address in machine.addresses and isinstance(self._clusters, SuspendingClusters):
            await self._clusters.suspend_at(plane.address)

    async def machine_on(self, machine: Machine) -> None:
        """Record that a machine is powered on: the kubelet starts its static pods again."""
        plane = self.served_by(machine)
        if plane is None:
            return
        member = plane.members[machine.spec.machine_id]
        member.alive, member.refusals = True, REFUSALS
        if plane.address in machine.addresses and isinstance(self._clusters, SuspendingClusters):
            await self._clusters.resume_at(plane.address)
        await self._serve(plane, machine)

    def _stop_serving(self, plane: ControlPlane, machine: Machine) -> None:
        for relay in plane.relays.pop(machine.spec.machine_id, []):
            relay.close()
        self.on_change()

    def _stop_without_majority(self, plane: ControlPlane) -> None:
        """Cut off all clients if etcd lost its majority: an API server without etcd does not answer."""
        if not plane.has_quorum:
            for relay in itertools.chain.from_iterable(plane.relays.values()):
                relay.cut()

    async def _end(self, plane: ControlPlane) -> None:
        with contextlib.suppress(ValueError):
            self._all.remove(plane)
        for relays in plane.relays.values():
            for relay in relays:
                relay.close()
        await self._clusters.close_at(plane.address)
        self.on_change()

    async def close(self) -> None:
        """End all clusters that kubeadm made."""
        await asyncio.gather(*(self._end(plane) for plane in list(self._all)))
