"""Names of nodes: the role and the last octet of the address, as in older managers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, ip_address

from kubevnfm_events.mgmt import ManagedNode


def node_names(nodes: Sequence[ManagedNode]) -> Mapping[str, str]:
    """Return host name by VNFC id: ``master<o>``, ``worker<o>`` with o the 4th octet of the address.

    If two nodes would have the same name, or the address is IPv6, a short hash of the address follows.
    The same address gives the same name, so a healed machine keeps its name. A node that has a name keeps it, and no
    other gets it: a node that joins later must not rename one that is in the cluster.
    Source: sequences.md 3.3; the hash keeps names unique across subnets.
    """
    known = {node.vnfc_id: node.name for node in nodes if node.name is not None}
    plain = {node.vnfc_id: _plain_name(node) for node in nodes if node.vnfc_id not in known}
    often = Counter([*plain.values(), *known.values()])
    return {
        node.vnfc_id: known.get(node.vnfc_id)
        or (name if often[name := plain[node.vnfc_id]] == 1 and name != node.role else f"{name}-{_address_hash(node)}")
        for node in nodes
    }


def _plain_name(node: ManagedNode) -> str:
    address = ip_address(node.nic_address)
    return f"{node.role}{address.packed[3]}" if isinstance(address, IPv4Address) else node.role


def _address_hash(node: ManagedNode) -> str:
    return hashlib.sha256(ip_address(node.nic_address).packed).hexdigest()[:8]
