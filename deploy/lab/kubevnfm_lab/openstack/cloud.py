"""The cloud as a whole: its services, put together behind one aiohttp application."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable
from typing import Any

from aiohttp import web

from kubevnfm_lab.openstack.balancer.api import BalancerApi
from kubevnfm_lab.openstack.balancer.octavia import Octavia
from kubevnfm_lab.openstack.compute.api import ComputeApi
from kubevnfm_lab.openstack.compute.flavors_api import FlavorsApi
from kubevnfm_lab.openstack.compute.microversion import headers as compute_headers
from kubevnfm_lab.openstack.compute.nova import Nova
from kubevnfm_lab.openstack.compute.servers_api import ServersApi
from kubevnfm_lab.openstack.compute.views import ServerViews
from kubevnfm_lab.openstack.identity.api import IdentityApi
from kubevnfm_lab.openstack.image.api import ImageApi
from kubevnfm_lab.openstack.image.glance import Glance
from kubevnfm_lab.openstack.network.addresses import AddressRange
from kubevnfm_lab.openstack.network.api import NetworkApi
from kubevnfm_lab.openstack.network.neutron import Neutron
from kubevnfm_lab.openstack.network.routes import FloatingRoutes
from kubevnfm_lab.openstack.network.trunks import Trunks
from kubevnfm_lab.openstack.orchestration.api import OrchestrationApi
from kubevnfm_lab.openstack.orchestration.engine import Engine
from kubevnfm_lab.openstack.orchestration.types.base import Services
from kubevnfm_lab.openstack.quotas import Quotas
from kubevnfm_lab.openstack.settings import CloudSettings
from kubevnfm_lab.openstack.tokens import Identity
from kubevnfm_lab.openstack.volume.api import VolumeApi
from kubevnfm_lab.openstack.volume.api import headers as volume_headers
from kubevnfm_lab.openstack.volume.cinder import Cinder
from kubevnfm_lab.openstack.wire import Gate, HeadersOf, Wire
from kubevnfm_lab.ports import Faults, Ledger, Machines

log = logging.getLogger(__name__)


class Cloud:
    """Keystone, Heat, Nova, Neutron, Octavia, Glance and Cinder of one lab."""

    def __init__(self, settings: CloudSettings, *, machines: Machines, faults: Faults, ledger: Ledger) -> None:
        self.settings, self.durations = settings, settings.durations
        self._machines = machines
        self._tasks: set[asyncio.Task[None]] = set()
        self.addresses = AddressRange()
        self.quotas = Quotas(settings.quotas)
        gate = Gate(faults, ledger)
        self.identity = Identity(settings.credentials, token_lifetime_s=settings.token_lifetime_s)
        self.routes = FloatingRoutes(machines)
        self.neutron = Neutron(self.quotas, self.addresses, route_floating=self.routes.route)
        self.trunks = Trunks(self.neutron)
        self.octavia = Octavia(self.neutron, self.durations)
        self.cinder = Cinder(self.quotas, self.durations)
        self.glance = Glance()
        self.nova = Nova(
            machines=machines,
            neutron=self.neutron,
            cinder=self.cinder,
            quotas=self.quotas,
            gate=gate,
            durations=self.durations,
            flavors=settings.flavors,
            hosts=settings.compute_hosts,
        )
        self._views = ServerViews(self.nova, self.neutron)
        self._services = Services(
            nova=self.nova,
            server_views=self._views,
            neutron=self.neutron,
            trunks=self.trunks,
            octavia=self.octavia,
            cinder=self.cinder,
            glance=self.glance,
            identity=self.identity,
            gate=gate,
            durations=self.durations,
            signal_key=secrets.token_bytes(32),
        )
        self.engine = Engine(
            self._services, create_retries=settings.create_retries, deleted_kept=settings.deleted_stacks_kept
        )
        self._populate()
        self._gate = gate

    def _populate(self) -> None:
        """Create what a fresh cloud has: the networks of the first project, and public images."""
        projects = list(self.identity.projects)
        # Shared only if there are other projects: a single one sees them as its own.
        self.neutron.make_lab_networks(projects[0], shared=len(projects) > 1)
        for name in self.settings.images:
            self.glance.make_builtin(name, projects[0])

    def serve_on(self, app: web.Application) -> None:
        """Add the routes of all services to an application."""

        def wire(part: str, prefix: str, headers: HeadersOf = lambda request, request_id: {}) -> Wire:
            return Wire(part, prefix, app, gate=self._gate, identity=self.identity, headers=headers)

        IdentityApi(
            self.identity,
            wire("keystone", "/identity", lambda request, request_id: {"Vary": "X-Auth-Token"}),
            region=self.settings.region,
            others=self.settings.catalog,
        )
        OrchestrationApi(
            self.engine,
            wire("heat", "/orchestration"),
            wire("heat", "/cloudformation"),
            signal_key=self._services.signal_key,
        )
        nova = wire("nova", "/compute", compute_headers)
        ComputeApi(self.nova, nova, quotas=self.quotas)
        FlavorsApi(self.nova, nova)
        ServersApi(
            self.nova,
            nova,
            views=self._views,
            neutron=self.neutron,
            glance=self.glance,
            console_log=self._console_log,
            spawn=self._spawn,
        )
        NetworkApi(self.neutron, self.trunks, wire("neutron", "/network"), quotas=self.quotas)
        BalancerApi(self.octavia, wire("octavia", "/load-balancer"))
        VolumeApi(self.cinder, wire("cinder", "/volume", volume_headers), quotas=self.quotas, spawn=self._spawn)
        ImageApi(self.glance, wire("glance", "/image"))

    def reached_at(self, base_url: str) -> None:
        """Set the cloud's own address, which resources publish in their attributes."""
        self._services.base_url = base_url

    async def close(self) -> None:
        """Stop all running work and release the address range."""
        await self.engine.close()
        await self.routes.close()
        await self.octavia.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.addresses.release()

    def inventory(self) -> dict[str, Any]:
        """Return what users created and did not delete, as the control interface shows it."""
        return {
            "stacks": [
                {"id": s.stack_id, "name": s.name, "status": s.state, "tags": s.tags}
                for s in self.engine.stacks.values()
                if s.parent is None
            ],
            "servers": [
                {
                    "id": s.server_id,
                    "name": s.name,
                    "status": s.status,
                    "host": s.host,
                    "addresses": [ip.address for port in self.nova.ports_of(s) for ip in port.fixed_ips],
                }
                for s in self.nova.servers.values()
            ],
            "ports": [
                {
                    "id": p.record_id,
                    "name": p.name,
                    "network": self.neutron.networks[p.network_id].name,
                    "device_id": p.device_id,
                    "mac": p.mac,
                    "addresses": [ip.address for ip in p.fixed_ips],
                }
                for p in self.neutron.ports.values()
            ],
            "application_credentials": [
                {"id": one.credential_id, "name": one.name} for one in self.identity.application_credentials.values()
            ],
            "trunks": [{"id": t.record_id, "name": t.name} for t in self.trunks.by_id.values()],
            "load_balancers": [
                {"id": b.record_id, "name": b.name, "address": b.vip_address, "status": b.status}
                for b in self.octavia.balancers.values()
            ],
            "volumes": [
                {
                    "id": v.volume_id,
                    "name": v.name,
                    "status": v.status,
                    "size": v.size_gib,
                    "servers": [one.server_id for one in v.attachments],
                }
                for v in self.cinder.volumes.values()
            ],
            "volume_snapshots": [
                {"id": one.snapshot_id, "name": one.name, "volume_id": one.volume_id, "status": one.status}
                for one in self.cinder.snapshots.by_id.values()
            ],
            "volume_types": [
                {"id": t.type_id, "name": t.name}
                for t in self.cinder.types.by_id.values()
                if t is not self.cinder.types.default
            ],
            "networks": [{"id": n.record_id, "name": n.name} for n in self.neutron.networks.values() if not n.builtin],
            "images": [
                {"id": i.image_id, "name": i.name, "status": i.status, "size": i.size}
                for i in self.glance.images.values()
                if not i.builtin
            ],
            "floating_ips": [
                {"id": f.record_id, "address": f.address, "port_id": f.port_id}
                for f in self.neutron.floating_ips.values()
            ],
        }

    def _console_log(self, machine_id: str) -> str:
        """Return a machine's boot messages; empty if the machines have no console."""
        read = getattr(self._machines, "console_log", None)
        server = self.nova.servers.get(machine_id)
        booted = server is not None and server.launched_at is not None
        return str(read(machine_id)) if read is not None and booted else ""

    def _spawn(self, work: Awaitable[None]) -> None:
        """Run the rest of a call's work after its answer."""
        task = asyncio.ensure_future(_run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_log_bug)


async def _run(work: Awaitable[None]) -> None:
    await work


def _log_bug(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("work after an answer ended by %r", error, exc_info=error)
