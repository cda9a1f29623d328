"""The objects that `kubeadm init` creates in a new cluster: its configuration, cluster-info, CoreDNS and kube-proxy."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any

from kubevnfm_lab import yaml_text
from kubevnfm_lab.machines.kubeconfig import Access, kubeconfig


def configuration(settings: Mapping[str, str], endpoint: str, access: Access) -> list[dict[str, Any]]:
    """Return the ConfigMaps that kubeadm writes first: kubeadm-config, kubelet-config, cluster-info."""
    cluster: dict[str, Any] = {
        "apiVersion": settings["configApi"],
        "kind": "ClusterConfiguration",
        "clusterName": "kubernetes",
        "controlPlaneEndpoint": endpoint,
        "kubernetesVersion": settings["kubernetesVersion"],
        "networking": {
            "dnsDomain": "cluster.local",
            "podSubnet": settings["podSubnet"],
            "serviceSubnet": settings["serviceSubnet"],
        },
    }
    # "{}" is what kubeadm writes for a component without settings.
    cluster["controllerManager"] = json.loads(settings.get("controllerManager", "{}"))
    kubelet = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "systemd"}
    info = yaml_text.load(kubeconfig(Access(access.server, access.ca_pem, "-"), user="")) | {"users": []}
    return [
        _config_map("kubeadm-config", "kube-system", {"ClusterConfiguration": yaml_text.dump(cluster)}),
        _config_map("kubelet-config", "kube-system", {"kubelet": yaml_text.dump(kubelet)}),
        _config_map("cluster-info", "kube-public", {"kubeconfig": yaml_text.dump(info)}),
    ]


def dns_and_proxy(settings: Mapping[str, str], *, coredns_image: str, has_proxy: bool) -> list[dict[str, Any]]:
    """Return CoreDNS and, unless its phase is skipped, kube-proxy; kube-proxy last, as kubeadm does."""
    version = settings["kubernetesVersion"]
    dns_address = str(ipaddress.ip_network(settings["serviceSubnet"], strict=False)[10])
    return [
        _account("coredns"),
        _config_map("coredns", "kube-system", {"Corefile": ".:53 {\n    errors\n    health\n    ready\n}\n"}),
        _coredns(coredns_image),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
            "spec": {
                "clusterIP": dns_address,
                "selector": {"k8s-app": "kube-dns"},
                "ports": [
                    {"name": "dns", "port": 53, "protocol": "UDP"},
                    {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
                ],
            },
        },
        *([_account("kube-proxy"), _kube_proxy(version)] if has_proxy else []),
    ]


def _config_map(name: str, namespace: str, data: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": dict(data),
    }


def _account(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kube-system"}}


def _coredns(image: str) -> dict[str, Any]:
    labels = {"k8s-app": "kube-dns"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "coredns", "namespace": "kube-system", "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": "coredns",
                    "tolerations": [
                        {"key": "CriticalAddonsOnly", "operator": "Exists"},
                        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
                    ],
                    "containers": [{"name": "coredns", "image": image}],
                },
            },
        },
    }


def _kube_proxy(version: str) -> dict[str, Any]:
    labels = {"k8s-app": "kube-proxy"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": "kube-proxy",
                    "hostNetwork": True,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "kube-proxy", "image": f"registry.k8s.io/kube-proxy:{version}"}],
                },
            },
        },
    }
