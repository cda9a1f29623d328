"""A cluster on real machines as it is seen from outside: by its API, and on its masters by SSH, past the product."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from kubevnfm_events.common import ClusterAccess
from real.real_machines import RealMachines, is_ready

SYSTEM_PODS: Final = "/api/v1/namespaces/kube-system/pods"
DNS_PODS: Final = f"{SYSTEM_PODS}?labelSelector=k8s-app%3Dkube-dns"
_ETCD_PKI: Final = "/etc/kubernetes/pki/etcd"
_POLL_S: Final = 0.2
_POLL_WITHIN_S: Final = 3.0


@dataclass(frozen=True)
class Member:
    """A member of etcd."""

    member_id: int
    name: str
    peer_urls: tuple[str, ...]


@dataclass(frozen=True)
class Balancer:
    """The settings of haproxy and keepalived on a master."""

    servers: frozenset[str]
    """``address:port`` of the API servers."""
    peers: frozenset[str]
    """The addresses that it exchanges VRRP advertisements with."""


@dataclass
class Polls:
    """How a series of questions to the API went."""

    asked: int = 0
    failed: int = 0
    longest_s: float = 0.0
    """The longest time from one answer to the next."""


@dataclass(frozen=True)
class SeenCluster:
    """A cluster, with the access that its installation returned."""

    machines: RealMachines
    access: ClusterAccess

    async def answers(self) -> bool:
        """Return whether the API answers five times in a row."""
        try:
            for _ in range(5):
                await self.machines.nodes_of(self.access)
        except (aiohttp.ClientError, TimeoutError):
            return False
        return True

    async def ready(self, names: Collection[str], *, within_s: float = 300.0) -> None:
        """Return once the cluster has these Nodes and no others, all Ready."""

        async def are_ready() -> bool:
            if not await self.answers():
                return False
            found = {name: is_ready(one) for name, one in (await self.machines.nodes_of(self.access)).items()}
            return found == dict.fromkeys(names, True)

        await self.machines.until(f"Nodes {', '.join(sorted(names))} are Ready", are_ready, within_s=within_s)

    async def not_ready(self, name: str) -> None:
        """Return once the cluster takes this Node for out of order."""

        async def is_lost() -> bool:
            with suppress(aiohttp.ClientError, TimeoutError):
                return not is_ready((await self.machines.nodes_of(self.access))[name])
            return False

        await self.machines.until(f"Node {name} is not Ready", is_lost)

    async def pods_ready(self, path: str, *, count: int = 1) -> None:
        """Return once there are at least so many pods that do not end, and all of them are Ready."""

        async def are_ready() -> bool:
            try:
                listed = (await self.machines.ask_api(self.access, path))["items"]
            except (aiohttp.ClientError, TimeoutError):
                return False
            staying = [one for one in listed if "deletionTimestamp" not in one["metadata"]]
            return len(staying) >= count and all(is_ready(one) for one in staying)

        await self.machines.until(f"{count} or more pods of {path.split('/')[4]} are Ready", are_ready)

    async def move_dns(self, node: str) -> None:
        """Let all pods of the cluster's DNS run on this Node."""
        others = set(await self.uids()) - {node}
        for name in others:
            await self._cordon(name, is_on=True)
        for pod in (await self.machines.ask_api(self.access, DNS_PODS))["items"]:
            await self.machines.ask_api(self.access, f"{SYSTEM_PODS}/{pod['metadata']['name']}", method="DELETE")

        async def are_there() -> bool:
            listed = (await self.machines.ask_api(self.access, DNS_PODS))["items"]
            return len(listed) > 1 and all(is_ready(one) and one["spec"].get("nodeName") == node for one in listed)

        await self.machines.until(f"the pods of DNS run on {node}", are_there)
        for name in others:
            await self._cordon(name, is_on=False)

    async def _cordon(self, node: str, *, is_on: bool) -> None:
        body = {"spec": {"unschedulable": True if is_on else None}}
        await self.machines.ask_api(self.access, f"/api/v1/nodes/{node}", method="PATCH", body=body)

    async def uids(self) -> dict[str, str]:
        """Return the uid of each Node by name."""
        return {name: one["metadata"]["uid"] for name, one in (await self.machines.nodes_of(self.access)).items()}

    async def members(self, address: str, name: str) -> dict[str, Member]:
        """Return the members of etcd by name, as the one on the master at ``address`` knows them."""
        words = ["kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "--server", f"https://{address}:6443"]
        words += ["-n", "kube-system", "exec", f"etcd-{name}", "--", "etcdctl", "--cacert", f"{_ETCD_PKI}/ca.crt"]
        words += [
            "--cert",
            f"{_ETCD_PKI}/server.crt",
            "--key",
            f"{_ETCD_PKI}/server.key",
            "member",
            "list",
            "-w",
            "json",
        ]
        listed: dict[str, Any] = json.loads(await self.machines.on(address, shlex.join(words)))
        return {
            one.get("name", ""): Member(one["ID"], one.get("name", ""), tuple(one["peerURLs"]))
            for one in listed["members"]
        }

    async def balancer(self, address: str) -> Balancer:
        """Return what haproxy and keepalived on the master at ``address`` are set to, both of which must run."""
        await self.machines.on(address, "systemctl is-active haproxy keepalived")
        haproxy = await self.machines.on(address, "cat /etc/haproxy/haproxy.cfg")
        keepalived = await self.machines.on(address, "cat /etc/keepalived/keepalived.conf")
        servers = [line.split()[2] for line in haproxy.splitlines() if line.startswith("  server ")]
        peers = keepalived.partition("unicast_peer {")[2].partition("}")[0].split()
        return Balancer(frozenset(servers), frozenset(peers))

    async def holder(self, addresses: Collection[str]) -> str:
        """Return at which of these masters the virtual address is; exactly one must have it."""
        held = [one for one in addresses if await self._has_virtual_address(one)]
        assert len(held) == 1, f"{self.machines.given.virtual_address} is on {held}"
        return held[0]

    async def _has_virtual_address(self, address: str) -> bool:
        shown = await self.machines.on(address, "ip -o address show")
        return f" {self.machines.given.virtual_address}/" in shown

    @asynccontextmanager
    async def polled(self) -> AsyncIterator[Polls]:
        """Ask the API for its version again and again, within the block; print how that went."""
        polls, last = Polls(), time.monotonic()

        async def poll() -> None:
            nonlocal last
            while True:
                polls.asked += 1
                try:
                    async with asyncio.timeout(_POLL_WITHIN_S):
                        await self.machines.ask_api(self.access, "/version")
                except (aiohttp.ClientError, TimeoutError):
                    polls.failed += 1
                else:
                    now = time.monotonic()
                    polls.longest_s, last = max(polls.longest_s, now - last), now
                await asyncio.sleep(_POLL_S)

        task = asyncio.create_task(poll())
        try:
            yield polls
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            polls.longest_s = max(polls.longest_s, time.monotonic() - last)
            self.machines.say(
                f"polls: {polls.asked}, failed: {polls.failed}, longest without an answer: {polls.longest_s:.1f} s"
            )
