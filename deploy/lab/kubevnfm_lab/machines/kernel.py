"""The state of a machine's kernel: modules, sysctl values and swap, visible under ``/proc``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kubevnfm_lab.machines.wordlist import words

KNOWN_MODULES = frozenset(
    words(
        "overlay br_netfilter nf_conntrack ip_tables iptable_nat ip_vs ip_vs_rr ip_vs_wrr ip_vs_sh nfs nfsd dm_crypt "
        "vxlan ipip dummy ip6_tables xt_socket bridge 8021q"
    )
)

BASE_SYSCTL = {
    "net.ipv4.ip_forward": "0",
    "net.ipv6.conf.all.forwarding": "0",
    "net.ipv4.ip_nonlocal_bind": "0",
    "vm.swappiness": "60",
    "vm.overcommit_memory": "0",
    "vm.max_map_count": "65530",
    "kernel.panic": "0",
    "kernel.panic_on_oops": "0",
    "fs.inotify.max_user_watches": "8192",
    "fs.inotify.max_user_instances": "128",
    "fs.file-max": "9223372036854775807",
    "net.core.somaxconn": "4096",
    "net.ipv4.conf.all.rp_filter": "2",
    "net.ipv4.vs.conntrack": "0",
}

BRIDGE_SYSCTL = {
    "net.bridge.bridge-nf-call-iptables": "1",
    "net.bridge.bridge-nf-call-ip6tables": "1",
    "net.bridge.bridge-nf-call-arptables": "1",
}


SHOWN_SYSCTL = ("net.ipv4.ip_forward", *BRIDGE_SYSCTL)
"""Values that installers read under ``/proc/sys``; the sysctl program shows the others too. Each one costs a file
per machine."""


@dataclass
class Kernel:
    """The running kernel; a restart creates a new one from the files under ``/etc``."""

    root: Path
    modules: set[str] = field(default_factory=set)
    sysctl: dict[str, str] = field(default_factory=lambda: dict(BASE_SYSCTL))
    swap_devices: list[str] = field(default_factory=list)
    _published: dict[str, str] = field(default_factory=dict, repr=False)

    def load(self, module: str) -> bool:
        """Load a module; return False if the image has none of that name."""
        name = module.replace("-", "_")
        if name not in KNOWN_MODULES:
            return False
        self.modules.add(name)
        # These keys exist only while the module is loaded; installers that set them earlier fail on real machines too.
        if name == "br_netfilter":
            for key, value in BRIDGE_SYSCTL.items():
                self.sysctl.setdefault(key, value)
        return True

    def set_value(self, key: str, value: str) -> bool:
        """Set a sysctl value; return False if there is no such key (its module may not be loaded)."""
        if key not in self.sysctl:
            return False
        self.sysctl[key] = value
        return True

    def publish(self) -> None:
        """Write the files under ``/proc``: modules, swaps and the values of `SHOWN_SYSCTL`; only those that changed."""
        modules = "".join(f"{name} 16384 0 - Live 0x0000000000000000\n" for name in sorted(self.modules))
        swaps = "".join(f"{device:<40}file\t\t2097148\t\t0\t\t-2\n" for device in self.swap_devices)
        texts = {"modules": modules, "swaps": f"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n{swaps}"}
        for key in SHOWN_SYSCTL:
            if key in self.sysctl:
                texts[f"sys/{key.replace('.', '/')}"] = f"{self.sysctl[key]}\n"
        for name, text in texts.items():
            if self._published.get(name) != text:
                target = self.root / "proc" / name
                if name.startswith("sys/") and name not in self._published:
                    target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
                self._published[name] = text


def modules_to_load(root: Path) -> list[str]:
    """Return the modules that ``/etc/modules-load.d`` names, in the order of systemd-modules-load."""
    names: list[str] = []
    for file in sorted((root / "etc/modules-load.d").glob("*.conf")):
        names += [
            line.strip() for line in file.read_text().splitlines() if line.strip() and line.strip()[0] not in "#;"
        ]
    return names


def sysctl_assignments(text: str) -> list[tuple[str, str]]:
    """Return key and value of every line of a sysctl.conf; a leading ``-`` of a key is dropped."""
    pairs = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#;" and "=" in stripped:
            key, _, value = stripped.partition("=")
            pairs.append((key.strip().lstrip("-").replace("/", "."), value.strip()))
    return pairs


def sysctl_files(root: Path) -> list[Path]:
    """Return the files that ``sysctl --system`` reads, in its order."""
    folders = [root / "usr/lib/sysctl.d", root / "etc/sysctl.d"]
    # A file under /etc replaces the one of the same name under /usr/lib, and the names give the order of all.
    by_name = {file.name: file for folder in folders for file in sorted(folder.glob("*.conf"))}
    last = root / "etc/sysctl.conf"
    return [by_name[name] for name in sorted(by_name)] + ([last] if last.exists() else [])
