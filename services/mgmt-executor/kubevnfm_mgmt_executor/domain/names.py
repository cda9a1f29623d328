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
    The same address gives the same name, so a healed machine keeps its name.
    Source: sequences.md 3.3; the hash keeps names unique across subnets.
    """
    plain = {node.vnfc_id: _plain_name(node) for node in nodes}
    often = Counter(plain.values())
    return {
        node.vnfc_id: name
        if often[name := plain[node.vnfc_id]] == 1 and name != node.role
        else f"{name}-{_address_hash(node)}"
        for node in nodes
    }


def _plain_name(node: ManagedNode) -> str:
    address = ip_address(node.nic_address)
    return f"{node.role}{address.packed[3]}" if isinstance(address, IPv4Address) else node.role


def _address_hash(node: ManagedNode) -> str:
    return hashlib.sha256(ip_address(node.nic_address).packed).hexdigest()[:8]
