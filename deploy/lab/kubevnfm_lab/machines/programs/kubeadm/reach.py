"""How a node finds the cluster behind an endpoint: name, balancer, master; and whether it answers."""

from __future__ import annotations

import asyncio

from kubevnfm_lab.machines.controlplanes import API_PORT, ControlPlane
from kubevnfm_lab.machines.programs.call import Call

CONNECT_TIMEOUT_S = 30.0  # as client-go; loopback refuses at once, so only a loaded machine takes any time


def split_endpoint(endpoint: str) -> tuple[str, int]:
    """Return host and port of ``host:port``, ``host`` or a URL; the port is 6443 unless given."""
    place = endpoint.removeprefix("https://").rstrip("/")
    host, colon, port = place.rpartition(":")
    return (host.strip("[]"), int(port)) if colon and port.isdigit() else (place, API_PORT)


def resolved(call: Call, host: str) -> str:
    """Return the address of a host name by the machine's ``/etc/hosts``; the name itself if it has no entry."""
    hosts = call.machine.root / "etc/hosts"
    for line in hosts.read_text().splitlines() if hosts.exists() else []:
        address, *names = line.split("#")[0].split() or [""]
        if host in names:
            return address
    return host


async def control_plane_at(call: Call, endpoint: str) -> ControlPlane | None:
    """Return the control plane that answers at an endpoint, None if none does."""
    host, port = split_endpoint(endpoint)
    address = resolved(call, host)
    await call.world.balancer.settle()
    if not await _accepts(address, port):
        return None
    planes = call.world.control_planes
    if port == API_PORT and (plane := planes.serving(address)):
        return plane
    targets = [*call.world.balancer.resolve(address, port), *call.world.floating_target(address, port)]
    found = (planes.serving(target) for target, target_port in targets if target_port == API_PORT)
    return next((plane for plane in found if plane), None)


async def _accepts(address: str, port: int) -> bool:
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(address, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
