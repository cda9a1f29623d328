"""The rule by which masters of a cluster may be healed: etcd must keep a majority at every moment (sequences.md 5.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.kubernetes.answers import MembersAnswer
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster, bracketed

PEER_PORT: Final = 2380


class QuorumAtRisk(ValueError):
    """A heal of these masters would leave etcd without a majority at some moment."""

    def __init__(self, target: str, *, members: int, left: int) -> None:
        """``left``: the healthy members while ``target`` is being replaced."""
        super().__init__(
            f"while {target} is replaced, {left} of {members} members of etcd would be left, {majority(members)} needed"
        )
        self.target = target


def majority(members: int) -> int:
    """Return how many of so many members must be healthy, so that etcd can decide."""
    return members // 2 + 1


def heal_order(members: Collection[str], *, healthy: Collection[str], targets: Collection[str]) -> Sequence[str]:
    """Return the order in which masters are healed, strictly one after another: those that are out of order come first.

    ``members``: the masters by name; ``healthy``: those whose etcd answers; ``targets``: those to heal. A healed master counts
    as healthy from then on, so the order decides what is possible.
    Raises: QuorumAtRisk if there is no order in which a majority is left at every moment; ValueError for unknown names.
    """
    unknown = {*healthy, *targets}.difference(members)
    if unknown:
        raise ValueError(f"not members: {', '.join(sorted(unknown))}")
    alive = len(set(healthy))
    order = sorted(set(targets), key=lambda name: (name in healthy, name))
    for target in order:
        # The new machine is a member again before its etcd has started, so all members count, and it does not.
        left = alive - (target in healthy)
        if left < majority(len(set(members))):
            raise QuorumAtRisk(target, members=len(set(members)), left=left)
        alive = left + 1
    return order


def next_to_heal(cluster: Cluster, etcd: MembersAnswer) -> ManagedNode:
    """Return the master that is taken out next, of those that are to be healed.

    The rule is applied to all of them, so that a heal that would stop at the second one does not begin with the first.
    Raises QuorumAtRisk.
    """
    name_by_url = {peer_url(node): cluster.name(node) for node in cluster.masters}
    members, healthy = set(name_by_url.values()), set()
    for url, answers in _members(etcd):
        # A member that is none of the masters counts for the majority as they do.
        name = name_by_url.get(url, url)
        members.add(name)
        if answers:
            healthy.add(name)
    target_by_name = {cluster.name(node): node for node in cluster.new_masters}
    return target_by_name[heal_order(members, healthy=healthy, targets=target_by_name)[0]]


def takes_part(etcd: MembersAnswer, node: ManagedNode) -> bool:
    """Return whether the member on a master was started and answers."""
    return any(url == peer_url(node) and answers for url, answers in _members(etcd))


def peer_url(node: ManagedNode) -> str:
    """Return where the other members reach the one on this master."""
    return f"https://{bracketed(node.nic_address)}:{PEER_PORT}"


def _members(etcd: MembersAnswer) -> Iterator[tuple[str, bool]]:
    """Yield each member's URL for the others, and whether it answers."""
    answering = {urlsplit(one.endpoint).hostname for one in etcd.health if one.health}
    for line in etcd.members.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) >= 4:
            yield fields[3], fields[1] == "started" and urlsplit(fields[3]).hostname in answering
