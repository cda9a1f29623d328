"""All machines of the lab, which the cloud boots and destroys; ``kubevnfm_lab.ports.Machines``."""

from __future__ import annotations

import asyncio
import random
import shutil
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from importlib import resources
from pathlib import Path
from typing import Any

import asyncssh

from kubevnfm_lab.machines.apiclient import Apis
from kubevnfm_lab.machines.balancer import Balancer
from kubevnfm_lab.machines.cloud_init import cloud_config
from kubevnfm_lab.machines.controlplanes import API_PORT, ControlPlanes
from kubevnfm_lab.machines.gate import Gate
from kubevnfm_lab.machines.machine import Machine, make_machine
from kubevnfm_lab.machines.nodes import Nodes
from kubevnfm_lab.machines.programs import PROGRAMS
from kubevnfm_lab.machines.relay import Relay, Target
from kubevnfm_lab.machines.rootfs import BASE_PROGRAMS, Rootfs, StandIns
from kubevnfm_lab.machines.settings import MachineSettings
from kubevnfm_lab.machines.sshd import Sshd
from kubevnfm_lab.machines.state_dir import reserved
from kubevnfm_lab.machines.storage import VolumeShelf
from kubevnfm_lab.machines.wordlist import words
from kubevnfm_lab.ports import Clusters, ConnectionDropped, Faults, Ledger, MachineSpec

HOST_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")

HOST_PROGRAMS = words(
    "[ awk base32 base64 basename bash bunzip2 bzip2 cat chmod cksum cmp comm cp cut dash date dd df diff dirname du echo "
    "egrep env expand expr false fgrep file find flock fmt fold getconf getent getopt gpg gpg-agent gpgconf grep gunzip "
    "gzip head hexdump iconv join jq kill link ln locale ls mawk md5sum mkdir mkfifo mktemp mv nice nl nohup nproc numfmt "
    "od openssl paste pathchk perl pgrep ping pr printenv printf ps pwd python3 readlink realpath rev rm rmdir sed "
    "seq setsid sh sha1sum sha256sum sha384sum sha512sum shred shuf sleep sort split stat stdbuf stty sum sync tac tail "
    "tar tee test time timeout touch tr true truncate tsort tty uname unexpand uniq unlink unxz unzip uptime wc which "
    "xargs xxd xz yes zcat zgrep"
)
"""Programs that shells take from the host: they only read and write files. Whatever could change the host itself
(package tools, mounts, services, container tools) is a stand-in or missing."""

ON_THEIR_OWN = {
    "sudo": "sudo.sh",
    "id": "id.sh",
    "whoami": "whoami.sh",
    "chown": "chown.sh",
    "chgrp": "chown.sh",
    "install": "install.sh",
    "curl": "fetch.sh",
    "wget": "fetch.sh",
}

BALANCER_PORT = 16443
"""The port of the masters' haproxy in the sample packages; floating addresses relay it."""

LOWEST_PORT, HIGHEST_PORT = 20_000, 29_999
"""Below Linux' ephemeral ports (32768 and up), where an outgoing connection could occupy the port."""


class SshMachines:
    """The machines of one lab. Created by `SshMachines.running`."""

    def __init__(
        self, state_dir: Path, *, clusters: Clusters, faults: Faults, ledger: Ledger, settings: MachineSettings
    ) -> None:
        self.settings = settings
        self.clusters = clusters
        self.faults = faults
        self.control_planes = ControlPlanes(clusters)
        self.balancer = Balancer(self.all, self.control_planes)
        self.control_planes.on_change = self.balancer.changed
        self.apis = Apis()
        self.nodes = Nodes(self.apis)
        self._floating: dict[str, list[Relay]] = {}
        self._fixed_by_floating: dict[str, str] = {}
        self._ledger = ledger
        self._state_dir = state_dir.resolve()
        self._shelf = VolumeShelf(self._state_dir / "volumes")
        self._machines: dict[str, Machine] = {}
        self._sshd: dict[str, Sshd] = {}
        self._ssh_port = settings.ssh_port
        self._port_holder: socket.socket | None = None
        self._shell = _host_program("bash") or "/bin/bash"
        self._host_bin = self._state_dir / "host-bin"
        self._gate_port = 0
        self._removals: set[asyncio.Task[None]] = set()
        self._gate = Gate(find=self._find, world=self, programs=PROGRAMS.get, faults=faults, ledger=ledger)

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        state_dir: Path,
        *,
        clusters: Clusters,
        faults: Faults,
        ledger: Ledger,
        settings: MachineSettings | None = None,
    ) -> AsyncIterator[SshMachines]:
        """Yield the machines, none booted yet; leaving the block destroys all and removes their files.

        Raises: StateDirInUse while another lab has the folder.
        """
        machines = cls(
            state_dir, clusters=clusters, faults=faults, ledger=ledger, settings=settings or MachineSettings()
        )
        with reserved(machines._state_dir):
            await machines._open()
            try:
                yield machines
            finally:
                await machines._close()

    @property
    def ssh_port(self) -> int:
        """The port of every machine's sshd."""
        return self._ssh_port

    def all(self) -> Sequence[Machine]:
        """Return the machines, powered or not."""
        return list(self._machines.values())

    def machine_at(self, address: str) -> Machine | None:
        """Return the powered machine that has this address."""
        return next((m for m in self._machines.values() if m.powered and address in m.addresses), None)

    async def boot(self, spec: MachineSpec) -> None:
        """See ports.Machines; raise ValueError for a second machine of the same id, OSError if an address is taken."""
        if spec.machine_id in self._machines:
            raise ValueError(f"machine_id: {spec.machine_id}: a machine with this id is already running")
        settings = self.settings
        config = cloud_config(
            spec.user_data,
            name=spec.name,
            public_key=spec.public_key,
            password_by_user=settings.password_by_user,
            default_user=settings.default_user,
            sudo_needs_password=settings.sudo_needs_password,
        )
        machine = make_machine(
            spec,
            config,
            rootfs=Rootfs(self._state_dir / spec.machine_id, self._stand_ins, settings.system),
            shelf=self._shelf,
            host_key=asyncssh.generate_private_key("ssh-ed25519"),
            settings=settings,
        )
        # Registered before the boot, whose services already cause changes.
        machine.units.on_change.append(partial(self._unit_changed, machine))
        self._machines[spec.machine_id] = machine
        try:
            await self._power_on(machine)
        except OSError:
            self._machines.pop(spec.machine_id, None)
            raise

    async def destroy(self, machine_id: str) -> None:
        """See ports.Machines."""
        machine = self._machines.pop(machine_id, None)
        if machine is None:
            return
        self._close_sshd(machine)
        machine.power_off()
        self.nodes.remove(machine)
        await self.nodes.settled()
        # The Node must be reported as lost before its API server may end.
        await self.control_planes.machine_gone(machine)
        # Removing thousands of files takes a while, so it happens in the background.
        if machine.rootfs.laid_out:
            task = asyncio.create_task(asyncio.to_thread(machine.rootfs.remove))
            self._removals.add(task)
            task.add_done_callback(self._removals.discard)

    async def stop(self, machine_id: str) -> None:
        """See ports.Machines; raise KeyError if there is no such machine."""
        machine = self._machines[machine_id]
        if machine.powered:
            self._close_sshd(machine)
            machine.power_off()
            self.nodes.settle(machine)
            await self.nodes.settled()
            await self.control_planes.machine_off(machine)

    async def start(self, machine_id: str) -> None:
        """See ports.Machines; raise KeyError if there is no such machine."""
        machine = self._machines[machine_id]
        if not machine.powered:
            await self._power_on(machine)
            await self._open_registries(machine)
            await self.control_planes.machine_on(machine)
            self.nodes.settle(machine)

    async def add_floating(self, floating: str, fixed: str) -> None:
        """Relay a floating address to a fixed or virtual one: sshd, API servers and their balancer."""
        await self.remove_floating(floating)
        relays = self._floating[floating] = []
        self._fixed_by_floating[floating] = fixed
        for port in (self._ssh_port, API_PORT, BALANCER_PORT):
            relay = Relay(floating, port, partial(self.floating_target, floating, port))
            await relay.open()
            relays.append(relay)

    async def remove_floating(self, floating: str) -> None:
        """Remove a floating address; does nothing if there is none."""
        self._fixed_by_floating.pop(floating, None)
        for relay in self._floating.pop(floating, []):
            relay.close()

    def floating_target(self, address: str, port: int) -> Sequence[Target]:
        """Return where connections to a floating address go; empty if it is not one."""
        fixed = self._fixed_by_floating.get(address)
        return [(fixed, port)] if fixed else []

    def console_log(self, machine_id: str) -> str:
        """Return the output of the machine's serial console; raise KeyError if there is no such machine."""
        return self._machines[machine_id].console()

    def inventory(self) -> Sequence[Mapping[str, Any]]:
        """See ports.Machines."""
        return [machine.inventory(ssh_port=self._ssh_port) for machine in self._machines.values()]

    def volumes(self) -> Sequence[Mapping[str, Any]]:
        """Return the volumes that machines held: file system, UUID and how often each was formatted."""
        return [
            {"id": v.volume_id, "filesystem": v.filesystem, "uuid": v.uuid, "formatted": v.formatted}
            for v in self._shelf.all()
        ]

    async def _power_on(self, machine: Machine) -> None:
        if self.settings.boot_seconds:
            await asyncio.sleep(self.settings.boot_seconds)
        try:
            await self.faults.check("ssh", "boot", node=machine.name)
        except ConnectionDropped:
            return  # the boot loader hangs: Nova shows the server, but no login succeeds
        if self._machines.get(machine.spec.machine_id) is not machine:
            return  # destroyed while it booted
        sshd = Sshd(
            machine,
            port=self._ssh_port,
            shell=self._shell,
            path=[str(self._stand_ins.base), str(self._host_bin)],
            faults=self.faults,
            ledger=self._ledger,
        )
        sshd.listen()
        self._sshd[machine.spec.machine_id] = sshd
        machine.power_on()

    async def _open_registries(self, machine: Machine) -> None:
        """Start the registry containers that Docker restarts after a boot."""
        for name, opened in machine.registries.items():
            container = machine.images.containers[name]
            container.running = container.restart != "no"
            if container.running:
                await opened.open()

    def _close_sshd(self, machine: Machine) -> None:
        sshd = self._sshd.pop(machine.spec.machine_id, None)
        if sshd:
            sshd.close()

    def _unit_changed(self, machine: Machine, name: str) -> None:
        if name in ("haproxy", "keepalived"):
            self.balancer.changed()
        elif name == "kubelet":
            self.nodes.settle(machine)

    def _find(self, program_path: str, root: str) -> Machine | None:
        # sudo and links hide the program's own path; the root folder identifies the machine then.
        for place in (program_path, root):
            if place.startswith(f"{self._state_dir}/"):
                # The first folder below the state folder is the machine's id.
                machine = self._machines.get(place.removeprefix(f"{self._state_dir}/").split("/", 1)[0])
                if machine:
                    return machine
        return None

    async def _open(self) -> None:
        if not self._ssh_port:
            self._port_holder = _free_port()
            self._ssh_port = int(self._port_holder.getsockname()[1])
        self._gate_port = await self._gate.open()

    @cached_property
    def _stand_ins(self) -> StandIns:
        """The programs of machines. They are written for the first one: many a lab has none."""
        self._host_bin.mkdir(exist_ok=True)
        for name in HOST_PROGRAMS:
            found = _host_program(name)
            link = self._host_bin / name
            # Links instead of the host's folders, so that shells see only the listed programs.
            if found and not link.is_symlink():
                link.symlink_to(found)
        folder = self._state_dir / "stand-ins"
        folder.mkdir(exist_ok=True)
        ask = folder / "ask"
        values = {
            "@BASH@": self._shell,
            "@PORT@": str(self._gate_port),
            "@TOKEN@": self._gate.secret,
            "@ASK@": str(ask),
            "@HOST_INSTALL@": _host_program("install") or "install",
            "@HOST_CURL@": _host_program("curl") or "",
            "@HOST_WGET@": _host_program("wget") or "",
        }
        base = folder / "base"
        base.mkdir(exist_ok=True)
        scripts = {ask: "ask.sh"} | {base / name: script for name, script in ON_THEIR_OWN.items()}
        for target, script in scripts.items():
            text = (resources.files("kubevnfm_lab.machines") / "shell" / script).read_text()
            for placeholder, value in values.items():
                text = text.replace(placeholder, value)
            target.write_text(text)
            target.chmod(0o700)
        for name in BASE_PROGRAMS:
            link = base / name
            if not link.is_symlink():
                link.symlink_to(ask)
        return StandIns(ask, base)

    async def _close(self) -> None:
        # Machines first: ending them still uses balancer, control planes and gate.
        await asyncio.gather(*(self.destroy(machine_id) for machine_id in list(self._machines)))
        for floating in list(self._floating):
            await self.remove_floating(floating)
        await self.balancer.close()
        await self.control_planes.close()
        await self._gate.close()
        await self.apis.close()
        if self._port_holder is not None:
            self._port_holder.close()
        await asyncio.gather(*self._removals, return_exceptions=True)
        for leftover in ("stand-ins", "host-bin"):
            await asyncio.to_thread(shutil.rmtree, self._state_dir / leftover, ignore_errors=True)


def _host_program(name: str) -> str | None:
    return shutil.which(name, path=":".join(HOST_FOLDERS))


def _free_port() -> socket.socket:
    """Return a socket with a port that is free on every address of this host.

    It does not listen, and keeps the port: the sshd of a machine can listen beside it, at the address of the machine.
    """
    for port in random.sample(range(LOWEST_PORT, HIGHEST_PORT), 200):
        holder = socket.socket()
        try:
            holder.bind(("", port))
        except OSError:
            holder.close()
            continue
        # Only now: with it, the bind would succeed beside another holder.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return holder
    raise OSError("no free port for the machines' sshd")
