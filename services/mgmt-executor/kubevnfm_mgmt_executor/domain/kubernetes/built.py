"""The facts of a cluster that exists, as kubeadm keeps them in the cluster: they are asked from it, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Final

from kubevnfm_kit.foreign_yaml.kubernetes import read_one_kubernetes_yaml

DEFAULT_NODE_MASK: Final = 24
"""kube-controller-manager, --node-cidr-mask-size-ipv4."""


@dataclass(frozen=True)
class BuiltCluster:
    """The ClusterConfiguration of kubeadm, as far as new nodes depend on it."""

    endpoint: str
    """``host:port`` of the API, to which nodes join."""
    version: str
    """That of the control plane, without a leading ``v``. A kubelet must not be newer."""
    places: int
    """The nodes that get a part of the pod network."""


def read_configuration(text: str) -> BuiltCluster:
    """Read the ClusterConfiguration (kubeadm.k8s.io/v1beta3 or v1beta4). Raises ValueError if it is not of that form."""
    try:
        given = read_one_kubernetes_yaml(text)
        pods = IPv4Network(str(given["networking"]["podSubnet"]).partition(",")[0])
        mask = _node_mask(
            _arguments(given.get("controllerManager") or {}).get("node-cidr-mask-size", DEFAULT_NODE_MASK)
        )
        return BuiltCluster(
            endpoint=str(given["controlPlaneEndpoint"]),
            version=str(given["kubernetesVersion"]).removeprefix("v"),
            places=2 ** max(0, mask - pods.prefixlen),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError("not a ClusterConfiguration of kubeadm with endpoint, version and pod network") from error


def _node_mask(given: object) -> int:
    """Return the length of a node's prefix. Raises ValueError: the text comes from a machine, and is an exponent here."""
    mask = int(str(given))
    if not 0 < mask <= IPv4Network(0).max_prefixlen:
        raise ValueError("node-cidr-mask-size: the length of an IPv4 prefix expected")
    return mask


def _arguments(part: Mapping[str, Any]) -> dict[str, Any]:
    given = part.get("extraArgs") or {}
    # v1beta3 has a map, v1beta4 a list of names and values.
    return dict(given) if isinstance(given, Mapping) else {one["name"]: one["value"] for one in given}
