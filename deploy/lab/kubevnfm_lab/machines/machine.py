"""One machine: its parts between boot and destruction. The behaviour of its programs is in `programs`."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from kubevnfm_lab.machines.cloud_init import CloudConfig
from kubevnfm_lab.machines.containers import Images
from kubevnfm_lab.machines.kernel import Kernel, modules_to_load, sysctl_assignments, sysctl_files
from kubevnfm_lab.machines.packages import BASE_INSTALLED, PackageDatabase
from kubevnfm_lab.machines.processes import ProcessGroups
from kubevnfm_lab.machines.registry import RegistryPort
from kubevnfm_lab.machines.rootfs import Rootfs
from kubevnfm_lab.machines.settings import MachineSettings
from kubevnfm_lab.machines.storage import Disks, VolumeShelf, fstab_entries
from kubevnfm_lab.machines.units import Units
from kubevnfm_lab.ports import MachineSpec


@dataclass
class Machine:
    """The body of a server."""

    spec: MachineSpec
    config: CloudConfig
    rootfs: Rootfs
    packages: PackageDatabase
    units: Units
    kernel: Kernel
    disks: Disks
    images: Images
    host_key: asyncssh.SSHKey
    hostname: str
    listening_addresses: Sequence[str]
    """Those of its addresses that this host can bind; at the others nothing answers."""
    powered: bool = False
    processes: ProcessGroups = field(default_factory=ProcessGroups)
    calls: Counter[str] = field(default_factory=Counter)
    """How often each stand-in program ran, ssh connections and sftp sessions were opened."""
    command_lines: deque[str] = field(default_factory=lambda: deque(maxlen=1000))
    """The last commands over ssh and calls of stand-ins, as every user of the machine could see them."""
    connections: set[asyncssh.SSHServerConnection] = field(default_factory=set)
    registries: dict[str, RegistryPort] = field(default_factory=dict)
    """Open ports of registry containers, by container."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    """Connections that are being set up, or that hang there because of a fault."""

    @property
    def name(self) -> str:
        """The server's name, which faults and the ledger use."""
        return self.spec.name

    @property
    def root(self) -> Path:
        """The folder that stands for ``/``."""
        return self.rootfs.root

    @property
    def addresses(self) -> Sequence[str]:
        """The fixed addresses of all interfaces, in their order."""
        return [str(nic.address) for nic in self.spec.nics]

    def path(self, shown: str, *, cwd: Path | None = None) -> Path:
        """Return the real path of one that a program was given: relative, absolute, or with the root in front."""
        if not shown.startswith("/"):
            return (cwd or self.root) / shown
        if shown == str(self.root) or shown.startswith(f"{self.root}/"):
            return Path(shown)
        return self.root / shown.lstrip("/")

    def shown(self, path: Path | str) -> str:
        """Return a path as programs on the machine see it."""
        text = str(path)
        if text == str(self.root):
            return "/"
        return text.removeprefix(str(self.root)) if text.startswith(f"{self.root}/") else text

    def lay_out(self) -> None:
        """Create the root folder, unless it exists already."""
        if self.rootfs.lay_out(self.config, swap=bool(self.kernel.swap_devices), hostname=self.hostname):
            self.disks.publish()
            self.kernel.publish()

    def power_on(self) -> None:
        """Do what a boot does from the files under ``/etc``: modules, sysctl values, swap, mounts, services."""
        self.powered = True
        # Many servers are never logged in to, so their files are made at the first connection.
        if not self.rootfs.laid_out:
            return
        swaps = [entry.source for entry in fstab_entries(self.root) if entry.kind == "swap"]
        self.kernel = Kernel(self.root, swap_devices=swaps)
        for module in modules_to_load(self.root):
            self.kernel.load(module)
        for file in sysctl_files(self.root):
            for key, value in sysctl_assignments(file.read_text()):
                self.kernel.set_value(key, value)
        self.kernel.publish()
        self.disks.mount_all()
        self.units.power_on()

    def power_off(self) -> None:
        """Lose the state that a power cut loses; the files stay."""
        self.powered = False
        self.units.power_off()
        self.disks.unmount_all()
        for opened in self.registries.values():
            opened.close()

    def console(self) -> str:
        """Return what the serial console shows: cloud-init prints the host keys there (module ssh-keys-console)."""
        public = self.host_key.export_public_key("openssh").decode().strip()
        algorithm, data = public.split()[:2]
        fingerprint = self.host_key.get_fingerprint()
        return (
            "[    0.000000] Linux version 5.15.0-119-generic\n"
            f"ci-info: hostname {self.hostname}\n"
            "-----BEGIN SSH HOST KEY FINGERPRINTS-----\n"
            f"256 {fingerprint} root@{self.hostname} (ED25519)\n"
            "-----END SSH HOST KEY FINGERPRINTS-----\n"
            "-----BEGIN SSH HOST KEY KEYS-----\n"
            f"{algorithm} {data} root@{self.hostname}\n"
            "-----END SSH HOST KEY KEYS-----\n"
            f"Cloud-init v. 24.4 finished. Datasource DataSourceOpenStackLocal\n\n{self.hostname} login: "
        )

    def inventory(self, *, ssh_port: int) -> dict[str, Any]:
        """Return the machine's part of the lab's inventory, JSON-able."""
        return {
            "id": self.spec.machine_id,
            "name": self.name,
            "hostname": self.hostname,
            "addresses": list(self.addresses),
            "ssh_port": ssh_port,
            "powered": self.powered,
            "root": str(self.root),
            "calls": dict(self.calls),
            "packages": sorted(name for name in self.packages.installed if name not in BASE_INSTALLED),
            "services": {unit.name: unit.state for unit in self.units.by_name.values()},
            "mounts": {mount.target: mount.source for mount in self.disks.mounts},
        }


def make_machine(
    spec: MachineSpec,
    config: CloudConfig,
    *,
    rootfs: Rootfs,
    shelf: VolumeShelf,
    host_key: asyncssh.SSHKey,
    settings: MachineSettings,
) -> Machine:
    """Return a machine as its image defines it; nothing is written yet."""
    distribution = settings.system.distribution
    packages = PackageDatabase(rootfs.root, settings.kubernetes_releases, distribution=distribution)
    packages.installed = {name: distribution[name] for name in BASE_INSTALLED}
    kernel = Kernel(rootfs.root, swap_devices=["/swap.img"] if settings.swap else [])
    return Machine(
        spec=spec,
        config=config,
        rootfs=rootfs,
        packages=packages,
        units=Units(rootfs.root),
        kernel=kernel,
        disks=Disks(rootfs.root, volumes=[shelf.volume(volume_id) for volume_id in spec.volumes]),
        images=Images(),
        host_key=host_key,
        hostname=config.hostname,
        listening_addresses=[str(nic.address) for nic in spec.nics if settings.is_reachable(nic.address)],
    )
