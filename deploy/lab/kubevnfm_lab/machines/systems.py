"""The operating systems that images of the lab's machines have: what they say of themselves, and their own packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_lab.machines.packages import DISTRIBUTION, Package


@dataclass(frozen=True)
class System:
    """One release of a distribution."""

    pretty_name: str
    os_release: str
    archive: str
    """The entry of ``/etc/apt/sources.list``."""
    own_packages: Mapping[str, Package] = field(default_factory=dict)
    """Packages that differ from those of Ubuntu 22.04."""

    @property
    def distribution(self) -> Mapping[str, Package]:
        """The packages of its archive by name."""
        return {**DISTRIBUTION, **self.own_packages}


UBUNTU: Final = System(
    "Ubuntu 22.04.5 LTS",
    """PRETTY_NAME="Ubuntu 22.04.5 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
VERSION="22.04.5 LTS (Jammy Jellyfish)"
VERSION_CODENAME=jammy
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=jammy
""",
    "deb http://archive.example/ubuntu jammy main universe\n",
)

# Seen on real machines with Debian 12: its containerd brings its configuration as a conffile, Ubuntu's brings none.
DEBIAN: Final = System(
    "Debian GNU/Linux 12 (bookworm)",
    """PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION="12 (bookworm)"
VERSION_CODENAME=bookworm
ID=debian
""",
    "deb http://archive.example/debian bookworm main\n",
    {
        "containerd": Package(
            "containerd",
            "1.6.20~ds1-1+deb12u1",
            ("bin/containerd", "bin/ctr"),
            ("containerd",),
            ("runc",),
            conffiles={
                "etc/containerd/config.toml": """version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd"
"""
            },
        )
    },
)
