"""kubeadm's checks before it changes anything."""

from __future__ import annotations

from collections.abc import Iterator

from kubevnfm_lab.machines.controlplanes import API_PORT
from kubevnfm_lab.machines.programs.call import Call, Failed, Options

MANIFESTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


def release(call: Call, package: str) -> tuple[int, int, int]:
    """Return the installed release of kubeadm or kubelet, (1, 31, 4)."""
    version = call.machine.packages.installed[package].version.partition("-")[0]
    major, minor, patch = (int(part) for part in version.split("."))
    return major, minor, patch


def check(call: Call, given: Options, *, role: str, control_plane_version: str = "") -> None:
    """Fail with every failed check, as kubeadm lists them; ``role``: init, join or join-control-plane."""
    ignored = {name.lower() for group in given.all("--ignore-preflight-errors") for name in group.split(",")}
    errors = [
        (name, text)
        for name, text in _failures(call, role, control_plane_version)
        if name.lower() not in ignored and "all" not in ignored
    ]
    if errors:
        listed = "".join(f"\t[ERROR {name}]: {text}\n" for name, text in errors)
        raise Failed(
            f"error execution phase preflight: [preflight] Some fatal errors occurred:\n{listed}"
            "[preflight] If you know what you are doing, you can make a check non-fatal with "
            "`--ignore-preflight-errors=...`\nTo see the stack trace of this error execute with --v=5 or higher",
            stdout="[preflight] Running pre-flight checks\n",
        )


def _failures(call: Call, role: str, control_plane_version: str) -> Iterator[tuple[str, str]]:
    machine = call.machine
    if not call.is_root:
        yield "IsPrivilegedUser", "user is not running as root"
    if role == "init":
        yield from _manifests_there(call)
    if not machine.units.is_active("containerd"):
        yield "CRI", (
            'container runtime is not running: output: time="now" level=fatal msg="validate service connection: '
            'validate CRI v1 runtime API for endpoint \\"unix:///run/containerd/containerd.sock\\": dial unix '
            '/run/containerd/containerd.sock: connect: no such file or directory", error: exit status 1'
        )  # fmt: skip
    elif _cri_is_disabled(call):
        yield (
            "CRI",
            (
                "container runtime is not running: output: rpc error: code = Unimplemented desc = unknown service "
                "runtime.v1.RuntimeService, error: exit status 1"
            ),
        )
    # Set by the br_netfilter module and by sysctl files, which install scripts forget most often.
    for key in ("net/bridge/bridge-nf-call-iptables", "net/ipv4/ip_forward"):
        value = machine.kernel.sysctl.get(key.replace("/", "."))
        name = f"FileContent--proc-sys-{key.replace('/', '-')}"
        if value is None:
            yield name, f"/proc/sys/{key} does not exist"
        elif value != "1":
            yield name, f"/proc/sys/{key} contents are not set to 1"
    if machine.kernel.swap_devices:
        yield "Swap", "running with swap on is not supported. Please disable swap"
    if "conntrack" not in machine.packages.installed:
        yield "FileExisting-conntrack", "conntrack not found in system path"
    yield from _kubelet(call, control_plane_version)
    # An active kubelet means that the machine has joined a cluster already.
    if machine.units.is_active("kubelet"):
        yield "Port-10250", "Port 10250 is in use"
    if role == "init" and call.world.control_planes.served_by(machine):
        yield f"Port-{API_PORT}", f"Port {API_PORT} is in use"
        yield "Port-2379", "Port 2379 is in use"
    etcd = machine.root / "var/lib/etcd"
    # A join of a worker does not use etcd's folder.
    if role != "join" and etcd.is_dir() and any(etcd.iterdir()):
        yield "DirAvailable--var-lib-etcd", "/var/lib/etcd is not empty"
    if role != "init":
        for path in ("/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf"):
            if machine.path(path).exists():
                yield f"FileAvailable-{path.replace('/', '-')}", f"{path} already exists"
        if machine.path("/etc/kubernetes/pki/ca.crt").exists():
            yield "FileAvailable--etc-kubernetes-pki-ca.crt", "/etc/kubernetes/pki/ca.crt already exists"


def _manifests_there(call: Call) -> Iterator[tuple[str, str]]:
    for name in MANIFESTS:
        path = f"/etc/kubernetes/manifests/{name}.yaml"
        if call.machine.path(path).exists():
            yield f"FileAvailable-{path.replace('/', '-')}", f"{path} already exists"


def _cri_is_disabled(call: Call) -> bool:
    # The stock configuration of Docker's containerd.io disables CRI.
    file = call.machine.root / "etc/containerd/config.toml"
    if not file.exists():
        return False
    lines = [line.strip() for line in file.read_text().splitlines()]
    return any(line.startswith("disabled_plugins") and '"cri"' in line for line in lines)


def _kubelet(call: Call, control_plane_version: str) -> Iterator[tuple[str, str]]:
    if "kubelet" not in call.machine.packages.installed:
        yield (
            "KubeletVersion",
            (
                "couldn't get kubelet version: cannot execute 'kubelet --version': exec: \"kubelet\": "
                "executable file not found in $PATH"
            ),
        )
        return
    _, minor, _ = release(call, "kubelet")
    if control_plane_version:
        wanted = int(control_plane_version.lstrip("v").split(".")[1])
        if minor > wanted:
            installed = call.machine.packages.installed["kubelet"].version.partition("-")[0]
            yield (
                "KubeletVersion",
                (
                    "the kubelet version is higher than the control plane version. This is not a supported version skew "
                    f'and may lead to a malfunctional cluster. Kubelet version: "{installed}" '
                    f'Control plane version: "{control_plane_version.lstrip("v")}"'
                ),
            )
