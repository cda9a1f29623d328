"""The settings of a lab's machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network

from kubevnfm_lab.machines.systems import UBUNTU, System


@dataclass(frozen=True)
class MachineSettings:
    """The machines of one lab: their logins, their image, and how long programs take."""

    ssh_port: int = 0
    """The port of every machine's sshd; 0: a free one below the ephemeral ports is chosen when the lab starts."""
    password_by_user: Mapping[str, str] = field(default_factory=lambda: {"ubuntu": "ubuntu", "root": "root"})
    """Accounts of the image; cloud-init user data changes them per machine."""
    default_user: str = "ubuntu"
    """The user that gets the server's key pair and the user data's ``password`` from cloud-init."""
    system: System = UBUNTU
    """The operating system of the image."""
    sudo_needs_password: bool = False
    """Cloud images let the default user sudo without a password; True is an image that does not."""
    swap: bool = True
    """Whether the image has swap, which kubeadm's preflight checks refuse."""
    seconds_by_program: Mapping[str, float] = field(default_factory=dict)
    """Simulated node time: seconds by pattern of program and first argument (``kubeadm *``, ``apt-get install``)."""
    kubernetes_releases: tuple[str, ...] = ("1.29.12", "1.30.8", "1.31.4", "1.32.1", "1.34.10")
    """Releases in the lab's Kubernetes package repository; the repository of one minor version shows only its own."""
    first_answer_s: float = 0.0
    """How long a new control plane would need until it answers. It takes no time here, but exceeds kubeadm's limits."""
    content_by_url: Mapping[str, bytes] = field(default_factory=dict)
    """Content of URLs outside the lab for curl and wget, by pattern of URL; any other host name is unknown."""
    reachable_networks: tuple[str, ...] = ("127.0.0.0/8",)
    """Machines listen on their addresses in these networks; at any other address they run with nothing listening.

    A network outside 127.0.0.0/8 belongs here only if this host has its addresses, since a machine whose address
    cannot be bound ends in ERROR: ``ip route add local 10.10.0.0/24 dev lo`` gives a Linux host a whole network.
    """
    boot_seconds: float = 0.0
    """How long a machine boots before its sshd listens."""

    def is_reachable(self, address: IPv4Address) -> bool:
        """Return whether a machine listens on this address."""
        return any(address in IPv4Network(network) for network in self.reachable_networks)

    def seconds_of(self, verb: str) -> float:
        """Return the simulated time of one run of ``<program> <first argument>``, by the first pattern that matches."""
        return next(
            (seconds for pattern, seconds in self.seconds_by_program.items() if fnmatchcase(verb, pattern)), 0.0
        )
