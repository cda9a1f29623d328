"""The address ranges of a cluster: pods, services, nodes."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import Final

from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.domain.request_section import Section

POD_CIDR: Final = IPv4Network("192.168.0.0/16")
SERVICE_CIDR: Final = IPv4Network("10.96.0.0/12")
POD_PREFIXES: Final = range(8, 33)
"""kube-controller-manager cuts at most 2^16 node networks of /24 out of it."""
SERVICE_PREFIXES: Final = range(12, 25)
"""kube-apiserver takes no larger service network than /12; below /24 a cluster runs out of Services soon."""
NODE_MASK: Final = 24
"""kube-controller-manager's --node-cidr-mask-size-ipv4 unless set: about 250 pods a node."""
LARGEST_NODE_MASK: Final = 28
"""14 pods a node: with less, the system's own pods fill a node."""


def network(section: Section, name: str, *, prefixes: range = range(33)) -> IPv4Network | None:
    """Return an IPv4 network with its host bits masked (``192.168.3.0/16`` is ``192.168.0.0/16``); None if not given.

    Raises: InvalidInput when it is none, or of a prefix length outside ``prefixes``.
    """
    given = section.text(name, expected="an IPv4 network such as 10.10.0.0/24")
    if given is None:
        return None
    try:
        found = IPv4Network(given, strict=False)
    except ValueError as error:
        raise section.malformed(name, "an IPv4 network such as 10.10.0.0/24") from error
    if "/" not in given or found.prefixlen not in prefixes:
        raise section.malformed(
            name, f"an IPv4 network with a prefix length from /{prefixes.start} to /{prefixes.stop - 1}"
        )
    return found


def refuse_overlap(section: Section, name: str, own: IPv4Network, others: Iterable[tuple[str, IPv4Network]]) -> None:
    """Raise Unprocessable when a network overlaps one of the others, (what it is, network)."""
    for what, other in others:
        if own.overlaps(other):
            raise section.contradiction(name, f"{own} overlaps {what} {other}")


def node_mask(pods: IPv4Network, *, nodes: int, field: str) -> int:
    """Return the prefix length of a node's part of the pod network, so that ``nodes`` parts fit.

    24 where that is enough (sequences.md 2.3), else as small as needed.
    Raises: Unprocessable when a part would be smaller than /28.
    """
    if pods.prefixlen <= NODE_MASK and 2 ** (NODE_MASK - pods.prefixlen) >= nodes:
        return NODE_MASK
    mask = pods.prefixlen + max(nodes - 1, 0).bit_length()
    if mask > LARGEST_NODE_MASK:
        raise Unprocessable(
            field, f"{pods} is too small for the {nodes} nodes that the VNFD allows: each would get a /{mask}"
        )
    return mask
