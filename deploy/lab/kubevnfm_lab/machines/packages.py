"""Debian packages of one machine: those that its sources offer, those installed and held, and their programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kubevnfm_lab.machines.wordlist import words


@dataclass(frozen=True)
class Package:
    """One version of a package."""

    name: str
    version: str
    programs: tuple[str, ...] = ()
    """Paths under ``/usr`` that exist once it is installed: ``bin/kubeadm``."""
    units: tuple[str, ...] = ()
    """Services that are enabled and started after the installation."""
    depends: tuple[str, ...] = ()
    conffiles: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Content by path of the configuration files that dpkg asks about when they were changed."""


def _distribution() -> tuple[Package, ...]:
    plain = words(
        "conntrack socat ebtables ethtool ipset ipvsadm iptables apt-transport-https ca-certificates gnupg gnupg-agent "
        "gnupg2 lsb-release software-properties-common sshpass python3 python3-yaml python3-pip openssl bash-completion "
        "chrony net-tools dnsutils iputils-ping vim git make psmisc tar gzip xz-utils unzip acl nftables keyutils "
        "libnfsidmap1 netcat-openbsd util-linux e2fsprogs mount kmod procps iproute2 sudo openssh-server cloud-init"
    )
    return (
        *(Package(name, "1.0-2ubuntu1") for name in plain),
        Package("curl", "7.81.0-1ubuntu1.20", ("bin/curl",)),
        Package("wget", "1.21.2-2ubuntu1.1", ("bin/wget",)),
        Package("jq", "1.6-2.1ubuntu3"),
        Package("rpcbind", "1.2.6-2build1", (), ("rpcbind",)),
        Package("nfs-common", "1:2.6.1-1ubuntu1.2", ("sbin/mount.nfs", "sbin/showmount"), (), ("rpcbind", "keyutils")),
        Package("nfs-kernel-server", "1:2.6.1-1ubuntu1.2", ("sbin/exportfs",), ("nfs-kernel-server",), ("nfs-common",)),
        Package("runc", "1.1.12-0ubuntu2~22.04.1", ()),
        Package("containerd", "1.7.24-0ubuntu1~22.04.1", ("bin/containerd", "bin/ctr"), ("containerd",), ("runc",)),
        Package("containerd.io", "1.7.25-1", ("bin/containerd", "bin/ctr"), ("containerd",)),
        Package("docker-ce-cli", "5:27.5.1-1~ubuntu.22.04~jammy", ("bin/docker",)),
        Package(
            "docker-ce",
            "5:27.5.1-1~ubuntu.22.04~jammy",
            (),
            ("docker",),
            ("docker-ce-cli", "containerd.io"),
        ),
        Package("docker.io", "26.1.3-0ubuntu1~22.04.1", ("bin/docker",), ("docker",), ("containerd",)),
        Package("haproxy", "2.4.24-0ubuntu0.22.04.2", ("sbin/haproxy",), ("haproxy",)),
        Package("keepalived", "1:2.2.4-0.2build1", ("sbin/keepalived",), ("keepalived",)),
    )


DISTRIBUTION: Final = {package.name: package for package in _distribution()}

BASE_INSTALLED: Final = words(
    "apt-transport-https ca-certificates gnupg lsb-release python3 python3-yaml openssl bash-completion iptables "
    "net-tools tar gzip xz-utils util-linux e2fsprogs mount kmod procps iproute2 sudo openssh-server cloud-init "
    "ethtool curl wget psmisc software-properties-common"
)

MINOR_IN_URI: Final = re.compile(r"v(1\.\d+)")


def kubernetes_packages(release: str) -> tuple[Package, ...]:
    """Return what the Kubernetes repository holds for one release, ``1.31.4``."""
    version = f"{release}-1.1"
    minor = release.rsplit(".", 1)[0]
    return (
        Package("kubelet", version, ("bin/kubelet",), ("kubelet",), ("kubernetes-cni", "conntrack", "ethtool")),
        Package("kubeadm", version, ("bin/kubeadm",), (), ("cri-tools",)),
        Package("kubectl", version, ("bin/kubectl",)),
        Package("cri-tools", f"{minor}.0-1.1", ()),
        Package("kubernetes-cni", "1.5.1-1.1"),
    )


@dataclass
class PackageDatabase:
    """The state of dpkg and apt on one machine."""

    root: Path
    kubernetes_releases: tuple[str, ...]
    installed: dict[str, Package] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    unfinished: dict[str, str] = field(default_factory=dict)
    """dpkg's status of installed packages that are not ``installed``: ``half-installed``, ``unpacked``, ``half-configured``."""
    distribution: Mapping[str, Package] = field(default_factory=lambda: DISTRIBUTION)
    """The packages of the image's own archive."""
    offered: dict[str, list[Package]] = field(init=False)
    """Versions by name, newest first, as of the last ``apt-get update`` (images bring the distribution's lists)."""

    def __post_init__(self) -> None:
        """Offer what the image's lists have."""
        self.offered = {name: [package] for name, package in self.distribution.items()}

    def sources(self) -> list[str]:
        """Return the active entries of ``/etc/apt/sources.list.d``, one string each."""
        entries: list[str] = []
        folder = self.root / "etc/apt/sources.list.d"
        for file in sorted(folder.glob("*.list")):
            lines = (line.strip() for line in file.read_text().splitlines())
            entries += [line for line in lines if line.startswith("deb ")]
        for file in sorted(folder.glob("*.sources")):
            entries += [block.replace("\n", " ") for block in file.read_text().split("\n\n") if "URIs:" in block]
        return entries

    def update(self) -> None:
        """Read the sources again: the distribution, and the Kubernetes releases that a source offers."""
        offered: dict[str, list[Package]] = {name: [package] for name, package in self.distribution.items()}
        for release in self._releases():
            for package in kubernetes_packages(release):
                versions = offered.setdefault(package.name, [])
                if package.version not in [other.version for other in versions]:
                    versions.append(package)
        self.offered = offered

    def _releases(self) -> list[str]:
        sources = [source for source in self.sources() if "k8s" in source or "kubernetes" in source]
        minors = {match.group(1) for source in sources for match in MINOR_IN_URI.finditer(source)}
        # The former apt.kubernetes.io, and mirrors of it, hold all releases in one repository.
        everything = any(MINOR_IN_URI.search(source) is None for source in sources)
        fitting = [r for r in self.kubernetes_releases if everything or r.rsplit(".", 1)[0] in minors]
        return sorted(fitting, key=lambda release: [int(part) for part in release.split(".")], reverse=True)

    def candidate(self, name: str, version: str | None = None) -> Package | None:
        """Return the version that apt would install; a trailing ``*`` matches as apt's does."""
        versions = self.offered.get(name, [])
        if version is None:
            return versions[0] if versions else None
        if version.endswith("*"):
            return next((p for p in versions if p.version.startswith(version[:-1])), None)
        exact = next((p for p in versions if p.version == version), None)
        if (
            exact is None
            and name in self.distribution
            and name in self.offered
            and name.startswith(("docker-ce", "containerd"))
        ):
            # Scripts pin old versions of Docker, which a real repository keeps for years.
            known = self.distribution[name]
            return Package(known.name, version, known.programs, known.units, known.depends)
        return exact

    def is_interrupted(self) -> bool:
        """Return whether dpkg was killed while it wrote its database."""
        updates = self.root / "var/lib/dpkg/updates"
        return updates.is_dir() and any(updates.iterdir())

    def status(self, name: str) -> str:
        """Return dpkg's status of an installed package."""
        return self.unfinished.get(name, "installed")

    def lacking(self, name: str) -> list[str]:
        """Return the dependencies of an installed package that are not installed."""
        return [
            other for other in self.installed[name].depends if other not in self.installed and other in self.offered
        ]

    def owner_of(self, program: str) -> Package | None:
        """Return the installed package that owns ``kubeadm``."""
        return next((p for p in self.installed.values() if any(x.endswith(f"/{program}") for x in p.programs)), None)
