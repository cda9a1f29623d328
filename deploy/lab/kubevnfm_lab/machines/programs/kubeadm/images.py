"""The images that a release of kubeadm wants, and whether a mirror that was filled from its list has the sandbox's."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Final

from kubevnfm_lab.machines.programs.call import Call

# Source: `kubeadm config images list` of these releases; 1.34 by the real one.
_COREDNS_PAUSE_ETCD: Final = {
    29: ("v1.11.1", "3.9", "3.5.16-0"),
    30: ("v1.11.3", "3.9", "3.5.15-0"),
    31: ("v1.11.3", "3.10", "3.5.15-0"),
    32: ("v1.11.3", "3.10", "3.5.16-0"),
    34: ("v1.12.1", "3.10.1", "3.6.5-0"),
}
_PUBLIC: Final = "registry.k8s.io"
_CRI: Final = "io.containerd.grpc.v1.cri"


def listed(call: Call, version: str = "", repository: str = "") -> Sequence[str]:
    """Return the images by full name, in kubeadm's order."""
    version = version or "v" + call.machine.packages.installed["kubeadm"].version.partition("-")[0]
    base = repository or _PUBLIC
    # The programs' tags are those of the wanted version, the other ones are built into kubeadm.
    minor = int(call.machine.packages.installed["kubeadm"].version.split(".")[1])
    coredns, pause, etcd = _COREDNS_PAUSE_ETCD.get(minor, _COREDNS_PAUSE_ETCD[31])
    names = [f"{base}/kube-{part}:{version}" for part in ("apiserver", "controller-manager", "scheduler", "proxy")]
    return [*names, f"{base}/coredns/coredns:{coredns}", f"{base}/pause:{pause}", f"{base}/etcd:{etcd}"]


def coredns(call: Call) -> str:
    """Return the image of CoreDNS."""
    return next(name for name in listed(call) if "/coredns:" in name)


def missing_sandbox(call: Call) -> str:
    """Return the sandbox's image if containerd wants one that its mirror has not: the mirror holds kubeadm's list."""
    etc = call.machine.root / "etc/containerd"
    if not (etc / "certs.d/_default/hosts.toml").exists():
        return ""
    plugins = tomllib.loads((etc / "config.toml").read_text()).get("plugins", {})
    wanted = str(plugins.get(_CRI, {}).get("sandbox_image", "registry.k8s.io/pause:3.8"))
    return "" if wanted in listed(call) else wanted
