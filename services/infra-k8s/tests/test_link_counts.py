"""The users of virtual links and their objects, under random calls, doubles, kills and other parties (MC-086, MC-088)."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from kubevnfm_infra_k8s.domain.errors import ObjectRefused
from worlds.link_counts import SPECS, TEN, Counts
from worlds.link_world import OneVim


def at_each_call(name: str, before: Callable[[Counts], None], after: Callable[[Counts], None]) -> None:
    """Have a link with one user; its pass after ``before`` dies after each of its calls once, and nothing is left after ``after``."""
    for dies_after in count():
        counts = Counts()
        counts.create(name=name, reference="vnf:1", namespace="ns1", times=1, dies_after=None)
        before(counts)
        is_alive = counts.run(counts._pass(counts.ids[name]), dies_after)
        after(counts)
        counts.settle()
        counts.teardown()
        if is_alive is not None:
            break
    assert dies_after > 5


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("then", ["gone", "moved", "kept"])
def test_a_kill_at_any_call_of_a_bring_up_leaves_nothing(name: str, then: str) -> None:
    """The process dies after each call once; then the users leave, or move to another namespace, or stay."""

    def after(counts: Counts) -> None:
        if then == "gone":
            counts.release(name=name, reference="vnf:1", times=1, dies_after=None)
        elif then == "moved":
            counts.hold(name=name, reference="vnf:1", namespace="ns2", times=1, dies_after=None)

    at_each_call(name, lambda _: None, after)


@pytest.mark.parametrize("name", SPECS)
def test_a_kill_at_any_call_of_a_removal_leaves_nothing(name: str) -> None:
    def before(counts: Counts) -> None:
        counts.settle()
        counts.release(name=name, reference="vnf:1", times=1, dies_after=None)

    at_each_call(name, before, lambda _: None)


@pytest.mark.parametrize("name", SPECS)
def test_a_kill_at_any_call_of_a_repair_leaves_nothing(name: str) -> None:
    """An object that another party has deleted is created again, the process dies, and the users leave."""

    def before(counts: Counts) -> None:
        counts.settle()
        counts.cluster.objects.clear()
        counts.hold(name=name, reference="vnf:1", namespace="ns1", times=1, dies_after=None)

    at_each_call(name, before, lambda counts: counts.release(name=name, reference="vnf:1", times=1, dies_after=None))


def test_a_shared_object_that_another_link_has_created_again_goes_with_the_last_of_them() -> None:
    """MC-093."""
    counts = Counts()
    for name in ("ovn-a", "ovn-b"):
        counts.create(name=name, reference="vnf:1", namespace="ns1", times=1, dies_after=None)
    counts.settle()
    for key in [each for each in counts.cluster.objects if each.name == "ovn-networkobj"]:
        del counts.cluster.objects[key]
    counts.hold(name="ovn-b", reference="vnf:1", namespace="ns1", times=1, dies_after=None)
    counts.settle()
    for name in ("ovn-b", "ovn-a"):
        counts.release(name=name, reference="vnf:1", times=1, dies_after=None)
        counts.settle()
    assert not counts.cluster.objects
    counts.teardown()


def test_a_refused_deletion_is_shown_and_tried_again() -> None:
    """MC-088."""
    counts = Counts()
    counts.create(name="plain", reference="vnf:1", namespace="ns1", times=1, dies_after=None)
    counts.settle()
    counts.release(name="plain", reference="vnf:1", times=1, dies_after=None)
    counts.cluster.refusal = ObjectRefused("plain", "the admission of the cluster forbids it")
    assert counts.run(counts._pass(counts.ids["plain"])) is False
    link = counts.run(counts.records.get(counts.ids["plain"]))
    assert (link.status, link.status_detail) == ("REMOVING", "plain: the admission of the cluster forbids it")
    counts.cluster.refusal = None
    counts.teardown()


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_link_whose_region_is_gone_says_so_and_can_be_removed(is_settled: bool) -> None:
    """MC-077: its creation may overlap with the removal of the region."""
    counts = Counts()
    counts.create(name="plain", reference="vnf:1", namespace="ns1", times=1, dies_after=None)
    if is_settled:
        counts.settle()
        counts.cluster.objects.clear()
    counts.work.vims = OneVim({})
    counts.run(counts._pass(counts.ids["plain"]))
    link = counts.run(counts.records.get(counts.ids["plain"]))
    assert (link.status, link.status_detail) == ("FAILED", "its region is not registered any more")
    assert link.is_decided
    counts.teardown()


def test_what_two_links_share_goes_with_the_last_of_them() -> None:
    """MC-093: whichever of them has made it, and whenever the process dies."""
    for first, other in (("ovn-a", "ovn-b"), ("ovn-b", "ovn-a")):
        for dies_after in range(0, 24, 2):
            counts = Counts()
            for name in SPECS:
                counts.create(name=name, reference="vnf:1", namespace="ns1", times=1, dies_after=None)
                counts.settle()
            counts.release(name=first, reference="vnf:1", times=1, dies_after=None)
            counts.run(counts._pass(counts.ids[first]), dies_after)
            counts.settle()
            assert counts.ids[other] in {each.id for each in counts.run(counts.records.in_region("vim"))}
            counts.teardown()


@pytest.mark.deep
def test_a_thousand_takes_releases_kills_and_doubles_on_ten_links() -> None:
    """MC-086, MC-088 (scenario 17): after each the count is that of the holders, and each link with holders has its objects."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    counts = Counts(TEN)
    deaths = taken = 0
    print(f"seed {seed}")  # noqa: T201 (a failure must be repeatable)
    for number in range(1, 1001):
        name, reference = chance.choice(sorted(TEN)), chance.choice(["vnf:1", "vnf:2", "vnf:3", "so"])
        dies_after = chance.choice([None, None, *range(12)])
        times, namespace = chance.choice([1, 1, 2]), chance.choice(["ns1", "ns2"])
        before = counts.clock.now()
        match chance.choice(["create", "hold", "hold", "release", "release", "bring", "bring"]):
            case "create":
                counts.create(name, reference, namespace, times, dies_after)
            case "hold":
                counts.hold(name, reference, namespace, times, dies_after)
            case "release":
                counts.release(name, reference, times, dies_after)
            case "bring":
                counts.bring(name, dies_after)
        deaths += counts.clock.now() != before
        counts.no_count_drifts()
        taken += len(counts.held[name])
        if number % 50 == 0:
            counts.settle()
    # Steps that never take or never die would show nothing.
    assert deaths > 100
    assert taken > 500
    counts.teardown()


TestCounts = Counts.TestCase
TestCounts.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
"""A thousand steps."""
