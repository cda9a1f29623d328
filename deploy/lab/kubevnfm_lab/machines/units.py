"""systemd units of one machine: which exist, are enabled and run, and why one does not start."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kubevnfm_lab.machines.lb_config import BadConfiguration, parse_haproxy


@dataclass
class Unit:
    """One service."""

    name: str
    """Without ``.service``."""
    enabled: bool = False
    state: str = "inactive"
    """active, inactive, failed, or activating (restarted again and again)."""
    starts: int = 0


@dataclass(frozen=True)
class Refusal:
    """Why a unit does not run: its state, and the reason in its journal."""

    state: str
    reason: str


ALIASES = {"nfs-server": "nfs-kernel-server", "sshd": "ssh"}

UNIT_FOLDERS = ("etc/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")


class Units:
    """The units of one machine; packages add some, unit files of the operator add others."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.by_name: dict[str, Unit] = {}
        self.on_change: list[Callable[[str], None]] = []
        """Called with the name of every unit that was started, stopped or reloaded; the load balancer uses it."""
        # Services of a stock Ubuntu image, which scripts expect to run.
        for name in ("ssh", "cron", "systemd-timesyncd", "systemd-resolved", "rsyslog", "dbus"):
            self.add(name, enabled=True, state="active")

    def add(self, name: str, *, enabled: bool, state: str = "inactive") -> Unit:
        """Add a unit, or return the existing one."""
        return self.by_name.setdefault(name, Unit(name, enabled, state))

    def discard(self, name: str) -> None:
        """Remove a unit whose package was removed."""
        if self.by_name.pop(name, None):
            self._notify(name)

    def find(self, name: str) -> Unit | None:
        """Return the unit; one with a unit file under ``/etc/systemd/system`` counts too."""
        short = name.removesuffix(".service")
        short = ALIASES.get(short, short)
        unit = self.by_name.get(short)
        # A unit file that a script wrote is known without daemon-reload.
        if unit is None and self.file_of(short) is not None:
            unit = self.add(short, enabled=False)
        return unit

    def file_of(self, short: str) -> Path | None:
        """Return the unit's file."""
        files = (self.root / folder / f"{short}.service" for folder in UNIT_FOLDERS)
        return next((file for file in files if file.is_file()), None)

    def is_active(self, name: str) -> bool:
        """Return whether the unit runs."""
        unit = self.find(name)
        return unit is not None and unit.state == "active"

    def start(self, unit: Unit) -> Refusal | None:
        """Start a unit; return why it does not run, or None."""
        refusal = self.refusal(unit)
        unit.state = "active" if refusal is None else refusal.state
        unit.starts += 1
        self._notify(unit.name)
        return refusal

    def stop(self, unit: Unit) -> None:
        """Stop a unit."""
        unit.state = "inactive"
        self._notify(unit.name)

    def reload(self, unit: Unit) -> Refusal | None:
        """Let a running unit read its configuration again; with an invalid one it keeps running unchanged."""
        refusal = self.refusal(unit)
        # An invalid configuration leaves the running service as it was, like most daemons do.
        if refusal is None:
            self._notify(unit.name)
        return refusal

    def power_off(self) -> None:
        """Stop all units; they stay enabled."""
        for unit in self.by_name.values():
            self.stop(unit)

    def power_on(self) -> None:
        """Start the enabled units."""
        for unit in self.by_name.values():
            if unit.enabled:
                self.start(unit)

    def _notify(self, name: str) -> None:
        for listener in self.on_change:
            listener(name)

    def refusal(self, unit: Unit) -> Refusal | None:
        """Return why a unit would fail if it were started now."""
        missing = self._missing_executable(unit.name)
        if missing:
            return Refusal("failed", f"Failed to locate executable {missing}: No such file or directory")
        check = CHECKS.get(unit.name)
        return check(self.root) if check else None

    def _missing_executable(self, name: str) -> str | None:
        file = self.file_of(name)
        if file is None:
            return None
        for line in file.read_text().splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "ExecStart" and value.strip():
                # Prefixes of ExecStart are flags of systemd, not part of the path.
                program = value.strip().lstrip("-@!+:").split()[0]
                return None if (self.root / program.lstrip("/")).exists() else program
        return None


def _kubelet(root: Path) -> Refusal | None:
    # The package's unit restarts every 10 s until kubeadm has written the configuration.
    if (root / "var/lib/kubelet/config.yaml").exists():
        return None
    return Refusal("activating", "failed to load kubelet config file, path: /var/lib/kubelet/config.yaml")


def _containerd(root: Path) -> Refusal | None:
    try:
        tomllib.loads((root / "etc/containerd/config.toml").read_text())
    except FileNotFoundError:
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return Refusal("failed", f"containerd: failed to load TOML: /etc/containerd/config.toml: {error}")
    return None


def _docker(root: Path) -> Refusal | None:
    try:
        json.loads((root / "etc/docker/daemon.json").read_text() or "{}")
    except FileNotFoundError:
        return None
    except ValueError as error:
        return Refusal("failed", f"unable to configure the Docker daemon with file /etc/docker/daemon.json: {error}")
    return None


def _haproxy(root: Path) -> Refusal | None:
    try:
        parse_haproxy((root / "etc/haproxy/haproxy.cfg").read_text())
    except (FileNotFoundError, BadConfiguration) as error:
        return Refusal("failed", str(error))
    return None


def _keepalived(root: Path) -> Refusal | None:
    file = root / "etc/keepalived/keepalived.conf"
    if file.exists() and file.stat().st_size:
        return None
    return Refusal(
        "inactive", "Condition: start condition failed: ConditionFileNotEmpty=/etc/keepalived/keepalived.conf"
    )


CHECKS: dict[str, Callable[[Path], Refusal | None]] = {
    "kubelet": _kubelet,
    "containerd": _containerd,
    "docker": _docker,
    "haproxy": _haproxy,
    "keepalived": _keepalived,
}
