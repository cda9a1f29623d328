"""Nova's rules: quota, scheduling, building, deletion, and the attachments of a server."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence

from kubevnfm_lab.openstack.compute.records import AttachedVolume, KeyPair, Server, ServerGroup, ServerRequest
from kubevnfm_lab.openstack.errors import ServiceError, bad_request, conflict, not_found
from kubevnfm_lab.openstack.ids import now_micro, now_z
from kubevnfm_lab.openstack.image.glance import Glance, Image
from kubevnfm_lab.openstack.network.neutron import Neutron, ipv4_addresses
from kubevnfm_lab.openstack.network.records import Port
from kubevnfm_lab.openstack.quotas import Quotas
from kubevnfm_lab.openstack.settings import Durations, Flavor
from kubevnfm_lab.openstack.volume.cinder import Cinder
from kubevnfm_lab.openstack.wire import Gate
from kubevnfm_lab.ports import ConnectionDropped, FaultInjected, Machines, MachineSpec, Nic


class Nova:
    """All servers of the cloud."""

    def __init__(
        self,
        *,
        machines: Machines,
        neutron: Neutron,
        cinder: Cinder,
        quotas: Quotas,
        gate: Gate,
        durations: Durations,
        flavors: Sequence[Flavor],
        hosts: int,
    ) -> None:
        self._machines, self._neutron, self._cinder = machines, neutron, cinder
        self._quotas, self._gate, self._durations = quotas, gate, durations
        self.flavors: dict[str, Flavor] = {flavor.flavor_id: flavor for flavor in flavors}
        self.hosts = [f"compute{index}" for index in range(1, hosts + 1)]
        self._next_host = itertools.cycle(self.hosts)
        self.servers: dict[str, Server] = {}
        self.key_pairs: dict[tuple[str, str], KeyPair] = {}
        """By user id and name."""
        self.groups: dict[str, ServerGroup] = {}

    # -- the life of a server

    def begin(self, request: ServerRequest, *, project_id: str, user_id: str) -> Server:
        """Register a server in status BUILD; raise the errors that the API answers at once."""
        flavor = request.flavor
        wanted = {"instances": 1, "cores": flavor.vcpus, "ram": flavor.ram_mib}
        if not flavor.fits:
            wanted["ram"] = 0  # it never gets a host, so the memory quota must not refuse it first
        if full := self._quotas.exceeded(project_id, **wanted):
            raise self._over_quota(project_id, full, wanted)
        if request.key_name and (user_id, request.key_name) not in self.key_pairs:
            raise bad_request("nova", "Invalid key_name provided.")
        ports = [self._port(port_id) for port_id in request.port_ids]
        for port in ports:
            if port.device_id:
                raise conflict("nova", "Conflict", f"Port {port.record_id} is still in use.")
        for one in request.volumes:
            volume = self._cinder.get(one.volume_id)
            if not self._cinder.can_attach(volume):
                message = (
                    f"Invalid volume: Invalid input received: Invalid volume: Volume {one.volume_id} status must be"
                    f" available or downloading to reserve, but the current status is {volume.status}. (HTTP 400)"
                )
                raise bad_request("nova", message)
        # Used up from here on, also if the build fails: a server in ERROR still counts.
        self._quotas.use(project_id, **wanted)
        server = Server(
            name=request.name,
            project_id=project_id,
            user_id=user_id,
            flavor=flavor,
            image_id=request.image_id,
            key_name=request.key_name,
            user_data=request.user_data,
            metadata=request.metadata,
            security_groups=request.security_groups or ["default"],
            availability_zone=request.availability_zone or "nova",
            group_id=request.group_id,
            config_drive=request.config_drive,
            host=request.host,
            tags=request.tags,
            image_min_disk_gib=flavor.disk_gib if request.image_id else 0,
        )
        self.servers[server.server_id] = server
        for port in ports:
            self._neutron.bind(port, device_id=server.server_id, owner="compute:nova")
            server.port_ids.append(port.record_id)
        for one in request.volumes:
            self._put_in(server, one)
        return server

    async def build(self, server: Server, request: ServerRequest) -> None:
        """Find a host, create missing ports and volumes, boot the machine; the server ends ACTIVE or in ERROR."""
        try:
            if self._durations.server_create_s:
                await asyncio.sleep(self._durations.server_create_s)
            server.host = self._schedule(server)
            for network_id, address in request.network_ids:
                asked = [{"ip_address": address}] if address else None
                port = self._neutron.create_port(
                    server.project_id,
                    self._neutron.networks[network_id],
                    fixed_ips=asked,
                    device_id=server.server_id,
                    device_owner="compute:nova",
                    made_by_nova=True,
                )
                server.port_ids.append(port.record_id)
            for size, image_id, goes_with_server in request.new_volumes:
                volume = self._cinder.begin(
                    server.project_id, server.user_id, {"size": size, "imageRef": image_id, "name": ""}
                )
                await self._cinder.make(volume)
                self._put_in(
                    server,
                    AttachedVolume(volume_id=volume.volume_id, device="", delete_on_termination=goes_with_server),
                )
            await self._gate.enter("nova", "server_boot", server.name)
            await self._machines.boot(self._spec(server))
        except ServiceError as error:
            self._failed(server, error.message, error.status)
        except FaultInjected as fault:
            self._failed(server, fault.message, fault.status)
        # The machine could not boot, for instance because its address is taken.
        except (ConnectionDropped, OSError) as error:
            self._failed(server, str(error), 500)
        else:
            if server.deleting:
                return
            server.launched_at = now_micro()
            server.became("ACTIVE", "active", 1)

    async def destroy(self, server: Server) -> None:
        """Delete a server and what belongs to it; return once it is gone, even if another call started the deletion."""
        if server.deleting:
            await server.gone.wait()
            return
        server.deleting, server.task_state = True, "deleting"
        try:
            if self._durations.server_delete_s:
                await asyncio.sleep(self._durations.server_delete_s)
            await self._machines.destroy(server.server_id)
        # A cancelled deletion must be possible again.
        except BaseException:
            server.deleting = False
            raise
        self._forget(server)

    async def stop(self, server: Server) -> None:
        """Power a server off."""
        await self._halt(server, "SHUTOFF", "stopped", 4)

    async def start(self, server: Server) -> None:
        """Power a server on."""
        await self._run(server)

    async def pause(self, server: Server) -> None:
        """Stop a server's processor. The lab's machine does not keep its memory: it is powered off meanwhile."""
        await self._halt(server, "PAUSED", "paused", 3)

    async def unpause(self, server: Server) -> None:
        """Continue a paused server."""
        await self._run(server)

    async def suspend(self, server: Server) -> None:
        """Write a server's memory to its disk and power it off; here too the memory is lost."""
        await self._halt(server, "SUSPENDED", "suspended", 4)

    async def resume(self, server: Server) -> None:
        """Continue a suspended server."""
        await self._run(server)

    async def _halt(self, server: Server, status: str, vm_state: str, power_state: int) -> None:
        if self._durations.server_action_s:
            await asyncio.sleep(self._durations.server_action_s)
        if server.launched_at is not None:
            await self._machines.stop(server.server_id)
        server.became(status, vm_state, power_state)

    async def _run(self, server: Server) -> None:
        if self._durations.server_action_s:
            await asyncio.sleep(self._durations.server_action_s)
        if server.launched_at is not None:
            await self._machines.start(server.server_id)
        server.became("ACTIVE", "active", 1)

    async def reboot(self, server: Server) -> None:
        """Power a server off and on."""
        if server.launched_at is not None:
            await self._machines.stop(server.server_id)
        await self.start(server)

    def begin_rebuild(self, server: Server, image_id: str | None, metadata: Mapping[str, str] | None = None) -> None:
        """Note the new image, and the metadata that take the place of all earlier ones."""
        server.image_id = image_id or server.image_id
        server.image_min_disk_gib = server.flavor.disk_gib if server.image_id else 0
        if metadata is not None:
            server.metadata = {str(key): str(value) for key, value in metadata.items()}
        server.status, server.task_state = "REBUILD", "rebuilding"

    async def rebuild(self, server: Server) -> None:
        """Give a server a fresh disk; it keeps its id, ports and volumes, and stays powered off if it was."""
        was_stopped = server.vm_state == "stopped"
        await self._machines.destroy(server.server_id)
        await self._machines.boot(self._spec(server))
        server.launched_at = now_micro()
        if was_stopped:
            await self.stop(server)
        else:
            server.became("ACTIVE", "active", 1)

    async def make_image(self, server: Server, image: Image, glance: Glance) -> None:
        """Write the disk of a server to its image; if that fails, Nova deletes the image."""
        if self._durations.server_action_s:
            await asyncio.sleep(self._durations.server_action_s)
        try:
            await self._gate.enter("nova", "server_image", server.name)
            await glance.upload(image, _disk(server))
        except FaultInjected:
            glance.images.pop(image.image_id, None)
        server.task_state = None

    async def rewire(self, server: Server) -> None:
        """Let the machine listen on the server's current addresses.

        A machine of the lab cannot change its interfaces while it runs, so it boots again, with a fresh disk.
        """
        if server.launched_at is None:
            return
        await self._machines.destroy(server.server_id)
        await self._machines.boot(self._spec(server))
        if server.status in ("SHUTOFF", "PAUSED", "SUSPENDED"):
            await self._machines.stop(server.server_id)

    async def cut_off(self, server: Server) -> None:
        """Detach all ports from a server, for use by its replacement; the server is then unreachable."""
        for port_id in server.port_ids:
            port = self._neutron.ports.get(port_id)
            if port is not None and not port.made_by_nova:
                self._neutron.unbind(port)
        server.port_ids = [
            p for p in server.port_ids if p in self._neutron.ports and self._neutron.ports[p].made_by_nova
        ]
        if server.launched_at is not None:
            await self._machines.stop(server.server_id)

    def resize(self, server: Server, flavor: Flavor) -> None:
        """Change a server's flavor; raise Nova's 400 if the new disk is smaller than that on which the image was put."""
        before = server.flavor
        if flavor.disk_gib < server.image_min_disk_gib:
            raise bad_request(
                "nova",
                "Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is"
                f" {flavor.disk_gib * 2**30} bytes, minimum size is {server.image_min_disk_gib * 2**30} bytes.",
            )
        wanted = {"cores": flavor.vcpus - before.vcpus, "ram": flavor.ram_mib - before.ram_mib}
        if full := self._quotas.exceeded(server.project_id, **wanted):
            raise self._over_quota(server.project_id, full, wanted)
        self._quotas.use(server.project_id, **wanted)
        server.flavor, server.updated = flavor, now_z()

    # -- volumes and ports of a server

    async def attach_volume(self, server: Server, volume_id: str, device: str = "") -> AttachedVolume:
        """Attach a volume to a server."""
        self._cinder.get(volume_id)
        if self._durations.volume_attach_s:
            await asyncio.sleep(self._durations.volume_attach_s)
        return self._put_in(server, AttachedVolume(volume_id=volume_id, device=device))

    def detach_volume(self, server: Server, volume_id: str) -> None:
        """Detach a volume from a server; raise Nova's 404 if it is not attached, its 400 if the server boots from it."""
        found = next((one for one in server.volumes if one.volume_id == volume_id), None)
        if found is None:
            message = f"volume_id not found: {volume_id}"
            raise not_found("nova", "VolumeNotFound", message)
        if found.boots:
            raise bad_request("nova", "Cannot detach a root device volume")
        server.volumes = [one for one in server.volumes if one.volume_id != volume_id]
        volume = self._cinder.volumes.get(volume_id)
        if volume is not None:
            self._cinder.detach(volume, server.server_id)

    def attach_port(self, server: Server, port: Port) -> None:
        """Attach another port to a server."""
        self._neutron.bind(port, device_id=server.server_id, owner="compute:nova")
        server.port_ids.append(port.record_id)
        server.updated = now_z()

    def detach_port(self, server: Server, port: Port) -> None:
        """Detach a port from a server."""
        server.port_ids.remove(port.record_id)
        if port.made_by_nova:
            self._neutron.drop_port(port)
        else:
            self._neutron.unbind(port)

    # -- key pairs and groups

    def add_key_pair(self, user_id: str, name: str, public_key: str) -> KeyPair:
        """Store a public key; raise Conflict if the user has one of that name."""
        if (user_id, name) in self.key_pairs:
            raise conflict("nova", "KeyPairExists", f"Key pair '{name}' already exists.")
        fields = public_key.split()
        try:
            raw = base64.b64decode(fields[1], validate=True)
        except (IndexError, ValueError) as error:
            raise bad_request("nova", "Keypair data is invalid: failed to generate fingerprint") from error
        # Nova still shows fingerprints in this format.
        digest = hashlib.md5(raw, usedforsecurity=False).hexdigest()
        fingerprint = ":".join(digest[i : i + 2] for i in range(0, 32, 2))
        made = self.key_pairs[user_id, name] = KeyPair(name, user_id, public_key, fingerprint)
        return made

    def add_group(self, *, name: str, policy: str, project_id: str, user_id: str) -> ServerGroup:
        """Create a server group."""
        known = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
        if policy not in known:
            raise bad_request("nova", f"Invalid input for field/attribute policy. Value: {policy}. Not one of {known}")
        made = ServerGroup(name=name, policy=policy, project_id=project_id, user_id=user_id)
        self.groups[made.group_id] = made
        return made

    # -- finding

    def get(self, server_id: str) -> Server:
        """Return a server; raise Nova's 404."""
        found = self.servers.get(server_id)
        if found is None:
            raise not_found("nova", "InstanceNotFound", f"Instance {server_id} could not be found.")
        return found

    def find_flavor(self, name_or_id: str) -> Flavor | None:
        """Return a flavor by its id or name."""
        found = self.flavors.get(name_or_id)
        if found is not None:
            return found
        return next((flavor for flavor in self.flavors.values() if flavor.name == name_or_id), None)

    def ports_of(self, server: Server) -> list[Port]:
        """Return a server's ports in the order of its interfaces."""
        return [port for port_id in server.port_ids if (port := self._neutron.ports.get(port_id))]

    # -- the inside

    def _schedule(self, server: Server) -> str:
        if not server.flavor.fits:
            raise ServiceError("nova", 500, "NoValidHost", "No valid host was found. ")
        group = self.groups.get(server.group_id or "")
        if server.host is not None:
            chosen = server.host
        elif group is None:
            return next(self._next_host)
        else:
            chosen = self._host_in_group(group)
        if group is not None:
            group.members.append(server.server_id)
        return chosen

    def _host_in_group(self, group: ServerGroup) -> str:
        taken = [member.host for member_id in group.members if (member := self.servers.get(member_id)) and member.host]
        # Affinity: all members on the host of the first one.
        if not group.policy.endswith("anti-affinity"):
            return taken[0] if taken else next(self._next_host)
        free = [host for host in self.hosts if host not in taken]
        if free:
            return free[0]
        if group.policy == "anti-affinity":
            raise ServiceError("nova", 500, "NoValidHost", "No valid host was found. ")
        # soft-anti-affinity spreads as evenly as possible and never fails.
        return min(self.hosts, key=taken.count)

    def _spec(self, server: Server) -> MachineSpec:
        key = self.key_pairs.get((server.user_id, server.key_name)) if server.key_name else None
        return MachineSpec(
            machine_id=server.server_id,
            name=server.name,
            nics=[
                Nic(address=address, mac=port.mac, network=self._neutron.networks[port.network_id].name)
                for port in self.ports_of(server)
                for address in ipv4_addresses(port)
            ],
            user_data=server.user_data,
            public_key=key.public_key if key else None,
            volumes=[one.volume_id for one in server.volumes],
            metadata=server.metadata,
        )

    def _put_in(self, server: Server, one: AttachedVolume) -> AttachedVolume:
        taken = {other.device for other in server.volumes}
        wanted = one.device if one.device.startswith("/dev/") or not one.device else f"/dev/{one.device}"
        # vda is the root disk, and the names continue from there.
        letters = (f"/dev/vd{letter}" for letter in "bcdefghijklmnopqrstuvwxyz")
        one.device = wanted or next(device for device in letters if device not in taken)
        self._cinder.attach(self._cinder.get(one.volume_id), server.server_id, one.device)
        server.volumes.append(one)
        server.updated = now_z()
        return one

    def _failed(self, server: Server, message: str, code: int) -> None:
        server.fault = {"code": code, "created": now_z(), "message": message}
        server.became("ERROR", "error", 0)

    def _forget(self, server: Server) -> None:
        for port in self.ports_of(server):
            if port.made_by_nova:
                self._neutron.drop_port(port)
            elif port.device_id == server.server_id:
                self._neutron.unbind(port)
        for one in server.volumes:
            volume = self._cinder.volumes.get(one.volume_id)
            if volume is not None:
                self._cinder.detach(volume, server.server_id)
                if one.delete_on_termination:
                    self._cinder.delete(volume)
        group = self.groups.get(server.group_id or "")
        if group is not None and server.server_id in group.members:
            group.members.remove(server.server_id)
        # The counterpart of begin, which did not count the memory of such a flavor.
        ram = server.flavor.ram_mib if server.flavor.fits else 0
        self._quotas.release(server.project_id, instances=1, cores=server.flavor.vcpus, ram=ram)
        self.servers.pop(server.server_id, None)
        server.became("DELETED", "deleted", 0)
        server.gone.set()

    def _port(self, port_id: str) -> Port:
        port = self._neutron.ports.get(port_id)
        if port is None:
            raise bad_request("nova", f"Port {port_id} could not be found.")
        return port

    def _over_quota(self, project_id: str, full: Sequence[str], wanted: dict[str, int]) -> ServiceError:
        requested = ", ".join(str(wanted[name]) for name in full)
        used = ", ".join(str(self._quotas.used(project_id, name)) for name in full)
        allowed = ", ".join(f"{self._quotas.limits[name]} {name}" for name in full)
        names = ", ".join(full)
        message = f"Quota exceeded for {names}: Requested {requested}, but already used {used} of {allowed}"
        return ServiceError("nova", 403, "TooManyInstances", message)


async def _disk(server: Server) -> AsyncIterator[bytes]:
    # Machines of the lab have no disk of their own to copy.
    yield server.server_id.encode()
