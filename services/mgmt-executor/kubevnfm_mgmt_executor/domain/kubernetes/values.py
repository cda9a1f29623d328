"""The parameters of the install script, task by task. Their names stand in this module only."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Final

from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import Secret

from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster, no_proxy
from kubevnfm_mgmt_executor.domain.kubernetes.package import InstallFiles

CNI_FILE: Final = "cni.yaml"
SCRIPT_FILE: Final = "install_k8s_cluster.sh"
MOST_PRIORITY: Final = 100
"""The first master's priority, by which VRRP elects the holder of the virtual address; each further one has one less."""
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
"""Kubernetes: Labels and Selectors, syntax and character set."""


def common(cluster: Cluster) -> Mapping[str, str]:
    """Return the parameters that every task has."""
    return {
        # The script marks completed tasks with the owner: marks that another instance left on the machine do not count.
        "OWNER": cluster.vnf_instance_id,
        "KUBERNETES_VERSION": cluster.parameters.x_kubernetes_version or "",
        "TIMEOUT_S": str(cluster.parameters.x_timeouts.node_ready),
    }


def proxies(cluster: Cluster) -> Mapping[str, str]:
    """Return the proxies of a machine."""
    proxy = cluster.parameters.proxy
    return {
        "HTTP_PROXY_URL": _clear(cluster, proxy.http_proxy),
        "HTTPS_PROXY_URL": _clear(cluster, proxy.https_proxy),
        "NO_PROXY_LIST": no_proxy(cluster),
    }


def prepare(cluster: Cluster, node: ManagedNode) -> Mapping[str, str]:
    """Return the parameters of ``prepare``."""
    mirror = cluster.parameters.x_mirror
    return {
        **common(cluster),
        **proxies(cluster),
        "NODE_NAME": cluster.name(node),
        **hosts(cluster, cluster.nodes),
        "APT_REPOSITORY": _clear(cluster, mirror.apt),
        "APT_KEY_URL": _clear(cluster, mirror.apt_key),
        "IMAGE_MIRROR": _clear(cluster, mirror.images),
        "BALANCED": str(cluster.is_balanced and node.role == "master").lower(),
    }


def hosts(cluster: Cluster, nodes: Sequence[ManagedNode]) -> Mapping[str, str]:
    """Return the parameters of ``hosts`` for a file that names these nodes."""
    # The names are made here, so no DNS has them.
    entries = [f"{node.nic_address} {cluster.name(node)}" for node in nodes]
    # Private registries that no DNS knows either.
    entries += [one.hosts_string for one in cluster.parameters.private_registry_connection_info if one.hosts_string]
    return {**common(cluster), "HOSTS_ENTRIES": "\n".join(dict.fromkeys(entries))}


def _clear(cluster: Cluster, secret: Secret | None) -> str:
    return cluster.reveal(secret) if secret is not None else ""


def init(cluster: Cluster) -> Mapping[str, str]:
    """Return the parameters of ``init``. The certificate is valid for every address at which the API is reached."""
    master, names = cluster.master, [cluster.address, cluster.public_address]
    if cluster.kuryr is not None:
        names.append(cluster.kuryr.api_address)
    for one in cluster.masters:
        names += [one.nic_address, one.ssh_address, cluster.name(one)]
    return {
        **common(cluster),
        **proxies(cluster),
        "NODE_NAME": cluster.name(master),
        "NODE_IP": master.nic_address,
        "ENDPOINT": cluster.endpoint,
        "CERT_SANS": " ".join(dict.fromkeys(name for name in names if name)),
        "POD_CIDR": str(cluster.parameters.master_node.pod_cidr),
        "SERVICE_CIDR": str(cluster.parameters.master_node.cluster_cidr),
        "NODE_CIDR_MASK": str(cluster.node_mask),
        "BALANCED": str(cluster.is_balanced).lower(),
        "KUBE_PROXY": _kube_proxy(cluster),
    }


def _kube_proxy(cluster: Cluster) -> str:
    # With Kuryr, load balancers of the cloud lead to Services.
    return str(cluster.parameters.kuryr_param is None).lower()


def balance(cluster: Cluster, node: ManagedNode) -> Mapping[str, str]:
    """Return the parameters of ``balance`` on one of several masters."""
    # By address, which a master that is healed keeps: so it also gets its old priority back (sequences.md 5.3).
    masters = sorted(cluster.masters, key=lambda one: ip_address(one.nic_address).packed)
    digest = hashlib.sha256(f"vrrp {cluster.vnf_instance_id}".encode()).digest()
    vrrp = cluster.parameters.x_vrrp
    prefix = ip_network(node.subnet_cidr, strict=False).prefixlen if node.subnet_cidr else ""
    return {
        **common(cluster),
        "NODE_NAME": cluster.name(node),
        "NODE_IP": node.nic_address,
        "ENDPOINT": cluster.endpoint,
        "MASTERS": "\n".join(f"{cluster.name(one)} {one.nic_address}" for one in masters if one in cluster.serving),
        "ROUTER_ID": str(vrrp.router_id or 1 + digest[0] % 255),
        "PRIORITY": str(MOST_PRIORITY - masters.index(node)),
        # It keeps other routers out that were given the same id by mistake. It is no secret: VRRP sends it in clear.
        "VRRP_PASSWORD": digest.hex()[2:10],
        "PREFIX_LENGTH": str(vrrp.prefix_len or prefix),
    }


def network(cluster: Cluster, files: InstallFiles) -> Mapping[str, str]:
    """Return the parameters of ``network``."""
    return {**common(cluster), "CNI_MANIFEST": CNI_FILE, "CNI_WORKLOADS": _workloads(files)}


def _workloads(files: InstallFiles) -> str:
    return "\n".join(f"{namespace} {workload}" for namespace, workload in files.network_workloads)


def join(
    cluster: Cluster, node: ManagedNode, *, ca_cert_hash: str, token: str, certificate_key: str = ""
) -> Mapping[str, str]:
    """Return the parameters of ``join``. Without a token, the task only finds out whether the node has joined."""
    return {
        **common(cluster),
        "NODE_NAME": cluster.name(node),
        "NODE_IP": node.nic_address,
        "ENDPOINT": cluster.endpoint,
        "CA_CERT_HASH": ca_cert_hash,
        "JOIN_TOKEN": token,
        "CONTROL_PLANE": str(node.role == "master").lower(),
        "CERTIFICATE_KEY": certificate_key,
    }


def members(cluster: Cluster, *, without: ManagedNode | None = None) -> Mapping[str, str]:
    """Return the parameters of ``members``: the etcd of any master may be asked, but not that of ``without``."""
    asked = [cluster.master, *(one for one in cluster.masters if one is not cluster.master)]
    return {**common(cluster), "THROUGH": " ".join(cluster.name(one) for one in asked if one is not without)}


def remove_member(cluster: Cluster, node: ManagedNode) -> Mapping[str, str]:
    """Return the parameters of ``remove_member``."""
    return {**members(cluster, without=node), "NODE_NAME": cluster.name(node), "NODE_IP": node.nic_address}


def labels(cluster: Cluster) -> Mapping[str, str]:
    """Return the parameters of ``label``: one line for all new workers with the same compute host and zone.

    Raises Unprocessable when a host or zone has a name that cannot be the value of a label.
    """
    workers: defaultdict[str, list[str]] = defaultdict(list)
    for node in cluster.targets:
        given = {"CIS-node": node.host, "kubernetes.io/zone": node.zone, "topology.kubernetes.io/zone": node.zone}
        pairs = [f"{name}={value}" for name, value in given.items() if value]
        for name, value in given.items():
            # Raised while the run is set up, before the first login: kubectl would refuse the value only at the end of
            # the installation.
            if value and not _LABEL_VALUE.fullmatch(value):
                raise Unprocessable(f"nodes.{node.vnfc_id}", f"{value!r} cannot be the value of label {name}")
        if pairs:
            workers[" ".join(pairs)].append(cluster.name(node))
    return {**common(cluster), "LABELS": "\n".join(f"{pairs}|{' '.join(names)}" for pairs, names in workers.items())}


def verify(cluster: Cluster, files: InstallFiles) -> Mapping[str, str]:
    """Return the parameters of ``verify``, for the new nodes."""
    new = [node for node in cluster.nodes if node.is_target]
    return {**of_nodes(cluster, new), "CNI_WORKLOADS": _workloads(files), "KUBE_PROXY": _kube_proxy(cluster)}


def of_nodes(cluster: Cluster, nodes: Sequence[ManagedNode]) -> Mapping[str, str]:
    """Return the parameters of ``cordon`` and ``uncordon``."""
    return {**common(cluster), "NODES": " ".join(cluster.name(node) for node in nodes)}


def drain(cluster: Cluster, node: ManagedNode, *, call_s: int) -> Mapping[str, str]:
    """Return the parameters of ``drain``; ``call_s``: how long one call of it waits."""
    policy = cluster.parameters.x_drain
    return {
        **common(cluster),
        "NODE_NAME": cluster.name(node),
        "TIMEOUT_S": str(call_s),
        "FORCE": str(policy.force).lower(),
        "DELETE_EMPTYDIR_DATA": str(policy.delete_emptydir_data).lower(),
    }


def delete(cluster: Cluster, node: ManagedNode) -> Mapping[str, str]:
    """Return the parameters of ``delete``."""
    return {**common(cluster), "NODE_NAME": cluster.name(node)}
