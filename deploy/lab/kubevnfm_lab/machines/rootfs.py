"""A machine's root folder, created at the first login, since the machines of most tests never see one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kubevnfm_lab.machines.cloud_init import CloudConfig
from kubevnfm_lab.machines.systems import UBUNTU, System
from kubevnfm_lab.machines.wordlist import words

FOLDERS = words(
    "dev etc etc/apt etc/apt/apt.conf.d etc/apt/keyrings etc/apt/sources.list.d etc/cloud etc/modules-load.d etc/sudoers.d "
    "etc/sysctl.d etc/systemd etc/systemd/system home mnt opt proc root run srv tmp usr usr/bin usr/lib usr/local "
    "usr/local/bin usr/local/sbin usr/sbin var var/lib var/lib/dpkg var/log var/tmp"
)
"""Parents before their children: each is created with one call."""

BASE_PROGRAMS = words(
    "apt-get apt apt-mark dpkg dpkg-query systemctl journalctl hostnamectl hostname "
    "swapoff swapon modprobe lsmod sysctl mount umount findmnt blkid mkfs mkfs.ext4 "
    "cloud-init ip iptables"
)


@dataclass(frozen=True)
class StandIns:
    """The scripts of stand-in programs, written once per lab."""

    asks_the_lab: Path
    """The script that passes its arguments to the lab; its name says which program it is."""
    base: Path
    """The folder of programs that every image has: those that need no lab (sudo, id, chown, curl) and
    `BASE_PROGRAMS`."""


@dataclass
class Rootfs:
    """The folder that stands for ``/`` of one machine."""

    root: Path
    stand_ins: StandIns
    system: System = UBUNTU
    laid_out: bool = False

    def lay_out(self, config: CloudConfig, *, swap: bool, hostname: str) -> bool:
        """Create the folder, the homes and the programs of the image; return False if that was done before."""
        if self.laid_out:
            return False
        self.laid_out = True
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in FOLDERS:
            (self.root / folder).mkdir()
        # As on Ubuntu since 19.04: /bin is a link into /usr.
        for alias in ("bin", "sbin"):
            (self.root / alias).symlink_to(f"usr/{alias}")
        self._write_etc(config, swap=swap, hostname=hostname)
        for account in config.accounts.values():
            self._add_home(account.home, account.public_keys)
        for file in config.files:
            target = self.root / file.path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(file.permissions)
        return True

    def add_programs(self, paths: Iterable[str]) -> None:
        """Add programs under ``/usr``: ``bin/kubeadm``."""
        for path in paths:
            link = self.root / "usr" / path
            if not link.is_symlink() and not (self.stand_ins.base / link.name).exists():
                link.symlink_to(self.stand_ins.asks_the_lab)

    def remove_programs(self, paths: Iterable[str]) -> None:
        """Remove programs."""
        for path in paths:
            (self.root / "usr" / path).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the folder with its content."""
        if self.laid_out:
            shutil.rmtree(self.root, ignore_errors=True)
            self.laid_out = False

    def _add_home(self, home: str, public_keys: list[str]) -> None:
        folder = self.root / home.lstrip("/")
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        if public_keys:
            keys = folder / ".ssh"
            keys.mkdir(mode=0o700, exist_ok=True)
            (keys / "authorized_keys").write_text("".join(f"{key}\n" for key in public_keys))

    def _write_etc(self, config: CloudConfig, *, swap: bool, hostname: str) -> None:
        etc = self.root / "etc"
        (etc / "os-release").write_text(self.system.os_release)
        (etc / "hostname").write_text(f"{hostname}\n")
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {hostname}\n::1 ip6-localhost ip6-loopback\n")
        (etc / "fstab").write_text(
            "LABEL=cloudimg-rootfs / ext4 discard,errors=remount-ro 0 1\n"
            + ("/swap.img none swap sw 0 0\n" if swap else "")
        )
        (etc / "resolv.conf").write_text("nameserver 127.0.0.53\noptions edns0 trust-ad\n")
        (etc / "machine-id").write_text(f"{os.urandom(16).hex()}\n")
        (etc / "apt/sources.list").write_text(self.system.archive)
        rules = [
            f"{account.name} ALL=(ALL) {'' if account.sudo_needs_password else 'NOPASSWD:'}ALL\n"
            for account in config.accounts.values()
            if account.may_sudo
        ]
        (etc / "sudoers.d/90-cloud-init-users").write_text("".join(rules))
