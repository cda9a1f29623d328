"""The rule of quorum, against a small model of etcd, for all sets of 3 and 5 masters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubevnfm_cluster.parameters import CLUSTER, ClusterParameters
from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_mgmt_executor.domain.kubernetes.answers import MembersAnswer
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster
from kubevnfm_mgmt_executor.domain.kubernetes.quorum import QuorumAtRisk, heal_order, next_to_heal, takes_part
from worlds.mgmt_lab import MgmtLab


class Etcd:
    """Members, and which of them run. A change needs a majority of the members, and must leave one."""

    def __init__(self, members: Iterable[str], running: Iterable[str]) -> None:
        self.members, self.running = set(members), set(running)

    @property
    def decides(self) -> bool:
        return 2 * len(self.running & self.members) > len(self.members)

    def survives(self, order: Sequence[str]) -> bool:
        """Return whether it decides at every moment while these members are replaced, one after another."""
        return all(self._survives_one(name) for name in order)

    def _survives_one(self, name: str) -> bool:
        moments = [self.decides]
        self.members.discard(name)
        moments.append(self.decides)
        self.running.discard(name)
        moments.append(self.decides)
        # Its successor is a member first, and runs then.
        self.members.add(name)
        moments.append(self.decides)
        self.running.add(name)
        return all(moments)


def subsets(names: Collection[str]) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(sorted(names)))


def a_cluster(names: Sequence[str], targets: Collection[str]) -> Cluster:
    """Return a cluster of masters, some of which are to be healed."""
    nodes = [
        ManagedNode(
            vnfc_id=name,
            role="master",
            ssh_address=f"10.0.0.{number}",
            nic_address=f"10.0.0.{number}",
            is_target=name in targets,
        )
        for number, name in enumerate(names, 1)
    ]
    return Cluster(
        vnf_instance_id="inst-1",
        parameters=ClusterParameters.model_validate(MgmtLab.parameters({})[CLUSTER]),
        reveal=lambda secret: "",
        masters=nodes,
        workers=(),
        name_by_vnfc={name: name for name in names},
        address="10.0.0.100",
        public_address=None,
        node_mask=24,
    )


def said(cluster: Cluster, healthy: Collection[str], *, more: str = "") -> MembersAnswer:
    """Return what etcd says of the masters."""
    lines = [f"{n:x}, started, {node.vnfc_id}, https://{node.nic_address}:2380, https://{node.nic_address}:2379, false"
             for n, node in enumerate(cluster.masters)]  # fmt: skip
    health = [
        {"endpoint": f"https://{node.nic_address}:2379", "health": node.vnfc_id in healthy} for node in cluster.masters
    ]
    return MembersAnswer.model_validate({"members": "\n".join([*lines, more]), "health": health})


def healed_one_by_one(members: Sequence[str], healthy: Collection[str], targets: Collection[str]) -> list[str]:
    """Return the order that the driver heals in: it chooses before each, by what etcd says then."""
    order: list[str] = []
    while left := set(targets).difference(order):
        cluster = a_cluster(members, left)
        order.append(next_to_heal(cluster, said(cluster, {*healthy, *order})).vnfc_id)
    return order


def check(members: Sequence[str], healthy: Collection[str], targets: Collection[str]) -> None:
    """Fail unless the order that is returned keeps the majority, and none exists if none is returned."""
    try:
        order = healed_one_by_one(members, healthy, targets)
    except QuorumAtRisk:
        assert not any(Etcd(members, healthy).survives(order) for order in permutations(sorted(targets)))
        return
    assert sorted(order) == sorted(targets)
    assert Etcd(members, healthy).survives(order)


def every_subset(names: Sequence[str]) -> Iterable[frozenset[str]]:
    for bits in range(2 ** len(names)):
        yield frozenset(name for number, name in enumerate(names) if bits >> number & 1)


@pytest.mark.parametrize("masters", [3, 5])
def test_no_set_of_masters_costs_the_majority_and_none_is_refused_in_excess(masters: int) -> None:
    """SEQ-189, 5.3, W-23: all sets of healthy masters, with all sets to heal."""
    names = [f"master{number}" for number in range(masters)]
    for healthy in every_subset(names):
        for targets in every_subset(names):
            check(names, healthy, targets)


@settings(deadline=None)  # load must not decide
@given(data=st.data(), masters=st.sampled_from([1, 2, 4, 6, 7]))
def test_the_same_holds_for_numbers_of_masters_that_people_make_by_hand(data: st.DataObject, masters: int) -> None:
    """SEQ-189."""
    names = [f"master{number}" for number in range(masters)]
    # The model tries all orders of a set, so the sets are small.
    targets = sorted(data.draw(subsets(names)))[:4]
    check(names, data.draw(subsets(names)), targets)


def test_a_master_that_is_down_is_healed_before_one_that_runs() -> None:
    assert heal_order(["m1", "m2", "m3"], healthy=["m1", "m3"], targets=["m1", "m2"]) == ["m2", "m1"]


def test_a_refusal_says_what_would_be_left() -> None:
    with pytest.raises(QuorumAtRisk, match=r"while m3 is replaced, 1 of 3 members of etcd would be left, 2 needed"):
        heal_order(["m1", "m2", "m3"], healthy=["m1", "m3"], targets=["m3"])


def test_a_member_that_is_none_of_the_masters_counts_and_one_without_a_start_does_not_answer() -> None:
    """W-22: a member that a machine has left behind makes four of three."""
    cluster = a_cluster(["master1", "master10", "master2"], ["master1"])
    assert next_to_heal(cluster, said(cluster, ["master1", "master10", "master2"])).vnfc_id == "master1"
    lost = "9, unstarted, , https://10.0.0.9:2380, , false"
    with pytest.raises(QuorumAtRisk, match="2 of 4 members of etcd would be left, 3 needed"):
        next_to_heal(cluster, said(cluster, ["master1", "master10", "master2"], more=lost))
    assert takes_part(said(cluster, ["master1"]), cluster.masters[0])
    assert not takes_part(said(cluster, ["master10"]), cluster.masters[0])


def test_an_unknown_master_is_named() -> None:
    with pytest.raises(ValueError, match="not members: m9"):
        heal_order(["m1"], healthy=["m1"], targets=["m9"])
