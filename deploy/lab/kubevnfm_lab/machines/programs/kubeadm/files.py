"""The files that kubeadm writes and removes on a machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from kubevnfm_lab.machines.controlplanes import ControlPlane
from kubevnfm_lab.machines.kubeconfig import Access, kubeconfig
from kubevnfm_lab.machines.machine import Machine
from kubevnfm_lab.machines.programs.kubeadm.preflight import MANIFESTS


def write_kubelet(machine: Machine, plane: ControlPlane, node_name: str) -> None:
    """Write the files that let the kubelet run as a node of the cluster, and start it."""
    ca = plane.cluster.ca_pem
    access = Access(f"https://{plane.endpoint}", ca)
    _write(machine, "etc/kubernetes/pki/ca.crt", ca, 0o644)
    _write(machine, "etc/kubernetes/kubelet.conf", kubeconfig(access, user=f"system:node:{node_name}"))
    _write(
        machine,
        "var/lib/kubelet/config.yaml",
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n",
    )
    _write(machine, "var/lib/kubelet/kubeadm-flags.env", f'KUBELET_KUBEADM_ARGS="--hostname-override={node_name}"\n')
    _write(machine, "var/lib/kubelet/pki/kubelet-client-current.pem", ca)
    (machine.root / "etc/kubernetes/manifests").mkdir(parents=True, exist_ok=True)
    unit = machine.units.find("kubelet")
    if unit:
        machine.units.start(unit)


def write_control_plane(machine: Machine, plane: ControlPlane) -> None:
    """Write admin.conf with a valid credential, the static pods' manifests and the traces of etcd."""
    access = Access(f"https://{plane.endpoint}", plane.cluster.ca_pem, plane.cluster.admin_token)
    for name, user in (
        ("admin", "kubernetes-admin"),
        ("super-admin", "kubernetes-super-admin"),
        ("controller-manager", "system:kube-controller-manager"),
        ("scheduler", "system:kube-scheduler"),
    ):
        _write(machine, f"etc/kubernetes/{name}.conf", kubeconfig(access, user=user))
    for name in MANIFESTS:
        _write(
            machine,
            f"etc/kubernetes/manifests/{name}.yaml",
            f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: kube-system\n",
        )
    for path in (
        "ca.key",
        "apiserver.crt",
        "apiserver.key",
        "front-proxy-ca.crt",
        "etcd/ca.crt",
        "etcd/server.crt",
        "etcd/server.key",
    ):
        _write(machine, f"etc/kubernetes/pki/{path}", "held by the lab\n")
    _write(machine, "var/lib/etcd/member/snap/db", "held by the lab\n")


def reset(machine: Machine) -> None:
    """Remove all of it, as kubeadm reset does, and stop the kubelet."""
    unit = machine.units.find("kubelet")
    if unit:
        machine.units.stop(unit)
    etc = machine.root / "etc/kubernetes"
    for name in ("admin", "super-admin", "kubelet", "bootstrap-kubelet", "controller-manager", "scheduler"):
        (etc / f"{name}.conf").unlink(missing_ok=True)
    for folder in ("etc/kubernetes/manifests", "etc/kubernetes/pki", "var/lib/kubelet", "var/lib/etcd"):
        _empty(machine.root / folder)


def _empty(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)
        folder.mkdir()


def _write(machine: Machine, path: str, text: str, mode: int = 0o600) -> None:
    target = machine.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch(mode)
    target.write_text(text)
