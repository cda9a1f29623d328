"""The rule by which masters of a cluster may be healed: etcd must keep a majority at every moment (sequences.md 5.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence


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
