"""The command lines of containerd and the kubelet."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_lab.machines.programs.call import Call, Exit, Program, options

DEFAULT_CONFIG = """version = 2
disabled_plugins = []

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.8"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = ""
"""


def _version_of(call: Call, *names: str) -> str:
    installed = call.machine.packages.installed
    version = next((installed[name].version for name in names if name in installed), "0")
    return version.rpartition(":")[2].partition("-")[0]


async def containerd(call: Call) -> Exit:
    """Containerd: --version, config default, config dump."""
    given = options(call.args)
    if given.words[:2] in (["config", "default"], ["config", "dump"]):
        return Exit(0, DEFAULT_CONFIG)
    return Exit(0, f"containerd github.com/containerd/containerd {_version_of(call, 'containerd', 'containerd.io')}\n")


async def kubelet(call: Call) -> Exit:
    """Kubelet --version."""
    return Exit(0, f"Kubernetes v{_version_of(call, 'kubelet')}\n")


PROGRAMS: Mapping[str, Program] = {
    "containerd": containerd,
    "kubelet": kubelet,
}
