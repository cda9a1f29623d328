"""What whoever starts the lab can decide about its machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network


@dataclass(frozen=True)
class MachineSettings:
    """One lab's machines: who may log in, what they find there, how long programs take."""

    ssh_port: int = 0
    """The port of every machine's sshd; 0: a free one below the ephemeral ports is chosen when the lab starts."""
    password_by_user: Mapping[str, str] = field(default_factory=lambda: {"ubuntu": "ubuntu", "root": "root"})
    """What the image brings; cloud-init user data changes it per machine."""
    default_user: str = "ubuntu"
    """The user that cloud-init gives the server's key pair and the user data's ``password`` to."""
    sudo_needs_password: bool = False
    """Cloud images let the default user sudo without one; True behaves like an image that does not."""
    swap: bool = True
    """Whether the image swaps, so that kubeadm's preflight is worth something."""
    seconds_by_program: Mapping[str, float] = field(default_factory=dict)
    """Simulated node time: seconds by pattern of program and first argument (``kubeadm *``, ``apt-get install``)."""
    kubernetes_releases: tuple[str, ...] = ("1.29.12", "1.30.8", "1.31.4", "1.32.1")
    """What the Kubernetes package repository of the lab offers; a repository of one minor version shows only its own."""
    content_by_url: Mapping[str, bytes] = field(default_factory=dict)
    """What curl and wget get from the world outside, by pattern of URL; any other host cannot be resolved."""
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
        """Return the simulated time of one run of ``<program> <first argument>``; the first pattern that fits wins."""
        return next(
            (seconds for pattern, seconds in self.seconds_by_program.items() if fnmatchcase(verb, pattern)), 0.0
        )
