"""Random plans, run by the saga with services that repeat, delay, lose and fail messages.

A plan has the same kind of step many times. It fans out, joins, and grows by replies. Every message may be delivered
twice, in any order, and the process may be killed before a move is stored. Each step is then done exactly once, in an
order that the edges allow, and a rollback leaves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubevnfm_events import Command, CommandFailed, Envelope, Event, Message
from kubevnfm_events.stacks import OperateServers, ServersOperated
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import PlanInvalid, PlannedStep, StepState
from kubevnfm_lcm_api.lifecycle.core.saga import Move, Saga
from kubevnfm_lcm_api.lifecycle.core.sequences import Sequences
from kubevnfm_lcm_api.lifecycle.core.step import Plan, Step, StepKinds
from kubevnfm_sol.lcm import OperationState, OperationType, VnfLcmOpOcc
from worlds.lcm_builders import NOW, RING, VIM, later

Graph = tuple[tuple[int, ...], ...]
"""For each step, by its number, the earlier steps that it comes after."""


class GraphDraft(Draft):
    """The things that exist according to the replies so far."""

    plan: ClassVar[str] = "graph"

    graph: Graph
    found: tuple[int, ...] = ()
    """The nodes for which the first step's reply adds steps, before the last step."""
    without_undo: tuple[str, ...] = ()
    made: tuple[str, ...] = ()


KINDS: StepKinds = {}
SEQUENCES = Sequences(KINDS)


@dataclass(frozen=True)
class Make(Step[GraphDraft, ServersOperated], registry=KINDS):
    """Make one thing; its compensation removes it."""

    name: str

    kind: ClassVar[str] = "make"
    label: ClassVar[str] = "Make {name}"
    base_timeout_s: ClassVar[float] = 60.0
    command: ClassVar[type[Command]] = OperateServers

    def ask(self, draft: GraphDraft) -> OperateServers:
        return self._command(draft, "STARTED")

    def fold(self, draft: GraphDraft, reply: ServersOperated) -> GraphDraft:
        return draft.model_copy(update={"made": (*draft.made, self.name)})

    def forget(self, draft: GraphDraft) -> GraphDraft:
        return draft.model_copy(update={"made": tuple(one for one in draft.made if one != self.name)})

    def undo(self, draft: GraphDraft) -> OperateServers | None:
        return None if self.name in draft.without_undo else self._command(draft, "STOPPED")

    def _command(self, draft: GraphDraft, state: Literal["STARTED", "STOPPED"]) -> OperateServers:
        return OperateServers(vnf_instance_id=draft.vnf_instance_id, vim=VIM, servers=(self.name,), state=state)


@dataclass(frozen=True)
class Find(Make, registry=KINDS):
    """Make one thing, and find nodes that each need two steps before the joining one."""

    joining: str = ""

    kind: ClassVar[str] = "find"

    def extend(self, draft: GraphDraft, plan: Plan[GraphDraft]) -> None:
        for node in draft.found:
            joined = plan.add(Make(f"join/{node}"), id=f"join/{node}", before=[self.joining])
            plan.add(Make(f"label/{node}"), id=f"label/{node}", after=[joined], before=[self.joining])


@SEQUENCES.sequence(GraphDraft)
def planned(draft: GraphDraft) -> Plan[GraphDraft]:
    plan = Plan[GraphDraft]()
    last = f"make/{len(draft.graph)}"
    for number, before in enumerate(draft.graph):
        name = f"make/{number}"
        step = Find(name, last) if number == 0 else Make(name)
        plan.add(step, id=name, after=[f"make/{one}" for one in before])
    plan.then(Make(last), id=last)
    return plan


SAGA = Saga(RING, SEQUENCES)


@st.composite
def drafts(draw: st.DrawFn) -> GraphDraft:
    """Return drafts of up to six planned steps with any edges, and up to four nodes that a reply reports."""
    length = draw(st.integers(1, 6))
    graph = tuple(
        tuple(sorted(draw(st.sets(st.integers(0, number - 1), max_size=3)))) if number else ()
        for number in range(length)
    )
    without_undo = draw(st.sets(st.sampled_from([f"make/{number}" for number in range(length + 1)]), max_size=2))
    return GraphDraft(
        vnf_instance_id="inst-1",
        graph=graph,
        found=tuple(range(draw(st.integers(0, 4)))),
        without_undo=tuple(sorted(without_undo)),
    )


def an_operation(draft: GraphDraft) -> OccurrenceRecord:
    occ = VnfLcmOpOcc(
        id="op-1", operation_state=OperationState.STARTING, state_entered_time="2026-11-20T12:00:00.000Z",
        start_time="2026-11-20T12:00:00.000Z", vnf_instance_id="inst-1", operation=OperationType.INSTANTIATE,
    )  # fmt: skip
    steps = SEQUENCES.planned(draft)
    return OccurrenceRecord(occ=occ, api_version="v2", plan="graph", steps=steps, draft=draft.document(RING))


def reread(record: OccurrenceRecord) -> OccurrenceRecord:
    """Return the record as it is read after a restart."""
    return OccurrenceRecord.from_document(record.document(RING))


@dataclass
class World:
    """The stored record, the messages under way, and the services with the things that exist there."""

    random: Random
    record: OccurrenceRecord
    fails: frozenset[tuple[str, str, int]] = frozenset()
    """(thing, STARTED or STOPPED, number of the command): these commands fail half done."""
    moves: int = 0
    made: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    """Made completely."""
    tries: Counter[tuple[str, str]] = field(default_factory=Counter)
    under_way: list[Envelope[Message]] = field(default_factory=list)
    replies: dict[str, Envelope[Message]] = field(default_factory=dict)
    """By command id: the reply that a service repeats if a command is delivered again."""

    def store(self, move: Move | None) -> bool:
        """Store a move with its messages; False if the process is killed just before."""
        if move is None:
            return True
        if self.random.random() < 0.1:
            return False
        self.moves += 1
        self.record = reread(move.record)
        for message in move.messages:
            if message.is_command:
                self.under_way += [message] * self.random.choice((1, 1, 2))
        return True

    def state(self) -> OperationState:
        return self.record.occ.operation_state

    def settle(self) -> None:
        """Deliver what is under way, in any order and some of it twice, until nothing is."""
        while self.under_way:
            message = self.under_way.pop(self.random.randrange(len(self.under_way)))
            if message.is_command:
                self.under_way += [self._work(message)] * self.random.choice((1, 1, 2))
            elif not self.store(SAGA.handle_reply(reread(self.record), message, later(self.moves))):
                self.under_way.append(message)

    def ask(self, task: Literal["retry", "rollback"]) -> None:
        """Request the task until a process lives long enough to store it."""
        while not self.store(SAGA.task(reread(self.record), task, later(self.moves))):
            pass
        self.settle()

    def _work(self, command: Envelope[Message]) -> Envelope[Message]:
        if command.id not in self.replies:
            self.replies[command.id] = command.follow_up(self._do(command), source="/kubevnfm/twin")
        return self.replies[command.id]

    def _do(self, command: Envelope[Message]) -> Event:
        data = command.data
        assert isinstance(data, OperateServers)
        (name,) = data.servers
        self._check_order(name, data.state)
        self.tries[name, data.state] += 1
        fails = (name, data.state, self.tries[name, data.state]) in self.fails
        if data.state == "STARTED":
            self.made.add(name)
            if not fails:
                self.done.add(name)
        elif not fails:
            self.made.discard(name)
            self.done.discard(name)
        if fails:
            return CommandFailed(command=command.type, code="broken", title="Broken", status=422, detail="half done")
        return ServersOperated(servers=(name,), state=data.state)

    def _check_order(self, name: str, state: str) -> None:
        steps = {step.id: step for step in self.record.steps}
        if state == "STARTED":
            for before in steps[name].after:
                assert before in self.done, f"{name} was sent before {before} was done"
        else:
            for step in steps.values():
                if name in step.after and step.id not in draft_of(self.record).without_undo:
                    assert step.id not in self.made, f"{name} was removed before {step.id}"


def draft_of(record: OccurrenceRecord) -> GraphDraft:
    draft = SEQUENCES.draft(record.plan, record.draft)
    assert isinstance(draft, GraphDraft)
    return draft


def started(draft: GraphDraft, random: Random, fails: frozenset[tuple[str, str, int]] = frozenset()) -> World:
    world = World(random, an_operation(draft), fails)
    while not world.store(SAGA.grant(reread(world.record), "grant-1", NOW)):
        pass
    world.settle()
    return world


def expected(draft: GraphDraft) -> set[str]:
    joined = {f"{what}/{node}" for node in draft.found for what in ("join", "label")}
    return {f"make/{number}" for number in range(len(draft.graph) + 1)} | joined


SOME = settings(max_examples=50, deadline=None, derandomize=True)
MANY = settings(max_examples=300, deadline=None, derandomize=True)


def every_step_is_done_once_in_the_order_of_the_edges(draft: GraphDraft, seed: int) -> None:
    world = started(draft, Random(seed))
    assert world.state() is OperationState.COMPLETED
    assert world.done == expected(draft)
    assert set(draft_of(world.record).made) == expected(draft)
    assert all(count == 1 for count in world.tries.values()), "no service did a step twice"


@SOME
@given(drafts(), st.integers())
def test_every_step_is_done_once_in_the_order_of_the_edges(draft: GraphDraft, seed: int) -> None:
    every_step_is_done_once_in_the_order_of_the_edges(draft, seed)


@pytest.mark.deep
@MANY
@given(drafts(), st.integers())
def test_every_step_is_done_once_in_the_order_of_the_edges_in_more_plans(draft: GraphDraft, seed: int) -> None:
    every_step_is_done_once_in_the_order_of_the_edges(draft, seed)


def a_failure_at_any_step_is_retried_until_each_is_done(draft: GraphDraft, seed: int, data: st.DataObject) -> None:
    names = sorted(expected(draft))
    fails = data.draw(st.sets(st.tuples(st.sampled_from(names), st.just("STARTED"), st.integers(1, 2)), max_size=4))
    world = started(draft, Random(seed), frozenset(fails))
    for _ in range(len(fails) + 1):
        if world.state() is OperationState.COMPLETED:
            break
        assert world.state() is OperationState.FAILED_TEMP
        world.ask("retry")
    assert world.state() is OperationState.COMPLETED
    assert world.done == expected(draft)


@SOME
@given(drafts(), st.integers(), st.data())
def test_a_failure_at_any_step_is_retried_until_each_is_done(draft: GraphDraft, seed: int, data: st.DataObject) -> None:
    a_failure_at_any_step_is_retried_until_each_is_done(draft, seed, data)


@pytest.mark.deep
@MANY
@given(drafts(), st.integers(), st.data())
def test_a_failure_at_any_step_is_retried_until_each_is_done_in_more_plans(
    draft: GraphDraft, seed: int, data: st.DataObject
) -> None:
    a_failure_at_any_step_is_retried_until_each_is_done(draft, seed, data)


def a_rollback_leaves_nothing_even_if_compensations_fail(draft: GraphDraft, seed: int, data: st.DataObject) -> None:
    names = sorted(expected(draft))
    broken = data.draw(st.sampled_from(names))
    undo_fails = data.draw(
        st.sets(st.tuples(st.sampled_from(names), st.just("STOPPED"), st.integers(1, 2)), max_size=4)
    )
    world = started(draft, Random(seed), frozenset({(broken, "STARTED", 1), *undo_fails}))
    assert world.state() is OperationState.FAILED_TEMP
    for _ in range(len(undo_fails) + 1):
        world.ask("rollback")
        if world.state() is OperationState.ROLLED_BACK:
            break
        assert world.state() is OperationState.FAILED_TEMP
    assert world.state() is OperationState.ROLLED_BACK
    assert world.made <= set(draft.without_undo)
    assert set(draft_of(world.record).made) <= set(draft.without_undo)


@SOME
@given(drafts(), st.integers(), st.data())
def test_a_rollback_leaves_nothing_even_if_compensations_fail(
    draft: GraphDraft, seed: int, data: st.DataObject
) -> None:
    a_rollback_leaves_nothing_even_if_compensations_fail(draft, seed, data)


@pytest.mark.deep
@MANY
@given(drafts(), st.integers(), st.data())
def test_a_rollback_leaves_nothing_even_if_compensations_fail_in_more_plans(
    draft: GraphDraft, seed: int, data: st.DataObject
) -> None:
    a_rollback_leaves_nothing_even_if_compensations_fail(draft, seed, data)


def a_rollback_that_failed_can_be_followed_by_a_retry(draft: GraphDraft, seed: int, data: st.DataObject) -> None:
    names = sorted(expected(draft))
    broken = data.draw(st.sampled_from(names))
    undo_fails = data.draw(st.sets(st.tuples(st.sampled_from(names), st.just("STOPPED"), st.just(1)), min_size=1))
    world = started(draft, Random(seed), frozenset({(broken, "STARTED", 1), *undo_fails}))
    world.ask("rollback")
    if world.state() is OperationState.ROLLED_BACK:
        return
    world.ask("retry")
    assert world.state() is OperationState.COMPLETED
    assert world.done == expected(draft)


@SOME
@given(drafts(), st.integers(), st.data())
def test_a_rollback_that_failed_can_be_followed_by_a_retry(draft: GraphDraft, seed: int, data: st.DataObject) -> None:
    a_rollback_that_failed_can_be_followed_by_a_retry(draft, seed, data)


@pytest.mark.deep
@MANY
@given(drafts(), st.integers(), st.data())
def test_a_rollback_that_failed_can_be_followed_by_a_retry_in_more_plans(
    draft: GraphDraft, seed: int, data: st.DataObject
) -> None:
    a_rollback_that_failed_can_be_followed_by_a_retry(draft, seed, data)


def test_independent_steps_of_a_rollback_are_undone_together() -> None:
    draft = GraphDraft(vnf_instance_id="inst-1", graph=((), (0,), (0,), (0,)))
    world = started(draft, Random(0), frozenset({("make/4", "STARTED", 1)}))
    move = SAGA.rollback(world.record, later(99))
    assert [message.stepid for message in move.messages if message.is_command] == ["make/4"]
    reply = world._work(next(message for message in move.messages if message.is_command))
    second = SAGA.handle_reply(move.record, reply, later(100))
    assert second is not None
    assert {m.stepid for m in second.messages if m.is_command} == {"make/1", "make/2", "make/3"}


def test_steps_that_an_earlier_reply_added_keep_their_count_of_tries() -> None:
    """A command of the second try with the id of the first would count as a repeat, and the service would not run it."""
    draft = GraphDraft(vnf_instance_id="inst-1", graph=((),), found=(0, 1))
    world = started(draft, Random(0), frozenset({("make/1", "STARTED", 1), ("make/0", "STOPPED", 1)}))
    world.ask("rollback")
    assert "make/0" in world.made
    assert "join/0" not in world.made
    world.ask("retry")
    assert world.state() is OperationState.COMPLETED
    assert {step.id: step.attempt for step in world.record.steps}["join/0"] == 3, "made, removed, made"


def test_a_duplicate_id_is_refused() -> None:
    plan = Plan[GraphDraft]()
    plan.add(Make("a"), id="join/worker-1")
    with pytest.raises(PlanInvalid, match="join/worker-1: the plan has a step of this id already"):
        plan.add(Make("b"), id="join/worker-1")


@pytest.mark.parametrize(
    ("edges", "reason"), [({"after": ["none"]}, "no step none"), ({"before": ["none"]}, "no step none")]
)
def test_an_edge_to_a_step_that_does_not_exist_is_refused(edges: Mapping[str, Any], reason: str) -> None:
    plan = Plan[GraphDraft]()
    with pytest.raises(PlanInvalid, match=reason):
        plan.add(Make("a"), **edges)


def test_a_cycle_is_refused() -> None:
    plan = Plan[GraphDraft]()
    first = plan.add(Make("a"), id="a")
    second = plan.add(Make("b"), id="b", after=[first])
    with pytest.raises(PlanInvalid, match="both before and after"):
        plan.add(Make("c"), id="c", after=[second], before=[first])


def test_a_reply_that_makes_the_plan_invalid_fails_its_step() -> None:
    draft = GraphDraft(vnf_instance_id="inst-1", graph=((),), found=(0, 0))
    world = started(draft, Random(0))
    assert world.state() is OperationState.FAILED_TEMP
    assert world.record.occ.error is not None
    assert "make/0: step join/0: the plan has a step of this id already" in world.record.occ.error.detail
    assert [step.id for step in world.record.steps] == ["make/0", "make/1"], "no part of it was stored"


def test_a_stored_plan_is_read_as_it_was_written() -> None:
    steps = planned(GraphDraft(vnf_instance_id="inst-1", graph=((), (0,)))).steps
    assert [PlannedStep.model_validate(s.model_dump(mode="json", by_alias=True)) for s in steps] == list(steps)
    assert [SEQUENCES.step(step).title for step in steps] == ["Make make/0", "Make make/1", "Make make/2"]
    assert {step.state for step in steps} == {StepState.WAITING}


def tries_kept(record: OccurrenceRecord) -> dict[str, list[int]]:
    return {step.id: [each.number for each in step.attempts] for step in (*record.steps, *record.gone_steps)}


def finding(draft: Draft, found: tuple[int, ...]) -> Draft:
    return draft.model_copy(update={"found": found})


def test_steps_that_a_repeated_reply_leaves_out_keep_their_attempts_and_continue_their_count() -> None:
    """API-164: a node that is found, not found and found again."""
    both, one = (0, 1), (0,)
    fails = {
        (name, state, number) for name, state in (("make/1", "STARTED"), ("make/0", "STOPPED")) for number in (1, 2)
    }
    world = started(GraphDraft(vnf_instance_id="inst-1", graph=((),), found=both), Random(1), frozenset(fails))
    for found in (one, both):
        world.ask("rollback")
        assert world.state() is OperationState.FAILED_TEMP
        world.record = SAGA.changed(world.record, partial(finding, found=found))
        world.ask("retry")
        assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in tries_kept(world.record).values())
    assert world.state() is OperationState.COMPLETED
    assert world.done == expected(draft_of(world.record))
    assert tries_kept(world.record)["join/1"] == [1, 2, 3]
    assert world.record.gone_steps == ()


def test_the_newest_attempts_of_a_step_are_kept() -> None:
    step = PlannedStep(id="a", kind="make", timeout_s=1.0)
    for number in range(1, 41):
        ended = {"state": StepState.FAILED, "ended_at": "2026-11-20T12:00:00.000Z", "earlier": step.kept_attempts}
        step = step.model_copy(update={**ended, "attempt": number, "started_at": "2026-11-20T12:00:00.000Z"})
    assert [each.number for each in step.attempts] == list(range(20, 41))
