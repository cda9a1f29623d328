"""containerd, ctr, crictl, runc and the kubelet's own command line."""

from __future__ import annotations

import json
from collections.abc import Mapping

from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Program, options

NO_SOCKET = (
    'ctr: failed to dial "/run/containerd/containerd.sock": context deadline exceeded: connection error: desc = '
    '"transport: error while dialing: dial unix /run/containerd/containerd.sock: connect: no such file or directory"'
)
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


async def ctr(call: Call) -> Exit:
    """Ctr: version, images list, pull, import."""
    given = options(call.args, with_value=("-n", "--namespace", "-a", "--address", "--user", "-u", "--hosts-dir"))
    machine = call.machine
    if not machine.units.is_active("containerd"):
        raise Failed(NO_SOCKET)
    match given.words:
        case ["version", *_]:
            return Exit(0, f"Client:\n  Version:  {_version_of(call, 'containerd', 'containerd.io')}\n")
        case ["images" | "image" | "i", "ls" | "list", *_]:
            return Exit(
                0,
                "REF TYPE DIGEST SIZE\n"
                + "".join(f"{name} - {digest} -\n" for name, digest in machine.images.tags.items()),
            )
        case ["images" | "image" | "i", "pull", reference, *_]:
            machine.images.pull(reference)
            return Exit(0, f"{reference}: resolved\n")
        case ["images" | "image" | "i", "import", name, *_]:
            if name != "-" and not call.path(name).exists():
                raise Failed(f"ctr: open {name}: no such file or directory")
            machine.images.pull(f"docker.io/library/{name.rsplit('/', 1)[-1].split('.')[0]}")
            return Exit()
    return Exit()


async def crictl(call: Call) -> Exit:
    """Crictl: version, info, images, pull, ps, pods."""
    given = options(
        call.args,
        with_value=(
            "-r",
            "--runtime-endpoint",
            "-i",
            "--image-endpoint",
            "-o",
            "--output",
            "-c",
            "--config",
            "--creds",
            "--timeout",
            "-t",
        ),
    )
    machine = call.machine
    if not machine.units.is_active("containerd"):
        raise Failed(
            'time="now" level=fatal msg="validate service connection: validate CRI v1 runtime API for endpoint '
            '\\"unix:///run/containerd/containerd.sock\\": rpc error: code = Unavailable desc = connection error"'
        )
    verb, *rest = given.words or [""]
    match verb:
        case "pull" if rest:
            digest = machine.images.pull(rest[0])
            return Exit(0, f"Image is up to date for {digest}\n")
        case "images" | "image":
            if given.get("-o", "--output") == "json":
                rows = [{"id": digest, "repoTags": [name]} for name, digest in machine.images.tags.items()]
                return Exit(0, json.dumps({"images": rows}) + "\n")
            return Exit(0, "IMAGE TAG IMAGE ID SIZE\n" + "".join(f"{n} {d}\n" for n, d in machine.images.tags.items()))
        case "info":
            ready = [
                {"type": kind, "status": True, "reason": "", "message": ""} for kind in ("RuntimeReady", "NetworkReady")
            ]
            return Exit(0, json.dumps({"status": {"conditions": ready}}) + "\n")
        case "version":
            return Exit(
                0,
                f"Version:  0.1.0\nRuntimeName:  containerd\nRuntimeVersion:  {_version_of(call, 'containerd', 'containerd.io')}\n",
            )
        case "ps" | "pods" | "stopp" | "rmp" | "stop" | "rm":
            return Exit(0, json.dumps({"containers": [], "items": []}) + "\n" if given.has("-o", "--output") else "")
    return Exit()


async def runc(call: Call) -> Exit:
    """Runc --version."""
    return Exit(0, f"runc version {_version_of(call, 'runc', 'containerd.io')}\nspec: 1.0.2-dev\n")


async def kubelet(call: Call) -> Exit:
    """Kubelet --version."""
    return Exit(0, f"Kubernetes v{_version_of(call, 'kubelet')}\n")


PROGRAMS: Mapping[str, Program] = {
    "containerd": containerd,
    "ctr": ctr,
    "crictl": crictl,
    "runc": runc,
    "kubelet": kubelet,
}
