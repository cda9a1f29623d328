"""Automatic heals and scalings: what asks for them, when they begin, and that a crash or a second gateway repeats none."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, cast

import pytest
import pytest_asyncio
from kubevnfm_events import Envelope
from kubevnfm_events.lcm import AutomaticDecided, OperationChanged
from kubevnfm_events.stacks import HealResources, StackDrift, StackFinding, StacksCompared
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound
from kubevnfm_lcm_api.automation.domain.action import COLLECTION, Action
from kubevnfm_lcm_api.automation.domain.trigger import Trigger, TriggerKind
from kubevnfm_lcm_api.lifecycle.core import instance as instances
from kubevnfm_lcm_api.lifecycle.core import occurrence as occurrences
from kubevnfm_store.port import StoreUnavailable
from kubevnfm_store.query import Query, by
from patience import until, until_true
from real.alertmanager import fault, message
from worlds.engine_world import SetClock
from worlds.lcm_world import FragileStore, Storage, World, lcm_world
from worlds.watched_store import WatchedStore

ASPECT = "VDU1_scale"
HEAL_COMMAND = "infra.openstack.heal_resources"
SCALE_COMMAND = "infra.openstack.scale_resources"
NOW: dict[str, Any] = {"automatic_heal_collects_s": 0.0, "automatic_heal_after_s": 0.0}
FREE: dict[str, Any] = {
    **NOW,
    "automatic_heal_cooldown_s": 0.0,
    "automatic_scale_cooldown_s": 0.0,
    "automatic_operations_per_hour": 0,
}


@dataclass
class Vnf:
    """A VNF of machines that allows to be healed and scaled, in a running gateway."""

    world: World
    id: str
    vnfcs: list[str]
    """The ids of its vnfcInfo."""
    clock: SetClock = field(default_factory=SetClock)

    async def heal(self, *vnfcs: str, fact: str = "fact-1", kind: TriggerKind = "auto-healing") -> None:
        trigger = Trigger(kind, fact, f"{fact} asks for it.")
        await self.world.automation.automatic.heal(self.id, vnfcs or self.vnfcs[:1], trigger)

    async def scale(
        self, direction: Literal["SCALE_OUT", "SCALE_IN"] = "SCALE_OUT", *, fact: str = "fact-1", aspect: str = ASPECT
    ) -> None:
        trigger = Trigger("auto-scaling", fact, f"{fact} asks for it.")
        await self.world.automation.automatic.scale(self.id, aspect, direction, trigger)

    async def actions(self) -> list[Action]:
        """Return all actions, in the order in which they were asked for."""
        found = await self.world.store.find(COLLECTION, Query(by(vnfInstanceId=self.id)))
        return sorted((Action.from_document(each.body) for each in found), key=lambda each: each.created_at)

    async def reached(self, state: str, *, number: int = 0) -> Action:
        """Wait until an action is in this state, and return it."""

        async def found() -> Action | None:
            await self.world.automation.work.look()
            shown = await self.actions()
            return shown[number] if number < len(shown) and shown[number].state == state else None

        return await until(found, timeout_s=60, pause_s=0.01)

    async def pass_time(self, seconds: float) -> None:
        """Set the clock ahead, and have the gateway look at what is due then."""
        self.clock.ahead_s += seconds
        await self.world.automation.work.look()

    async def operations(self, operation: str) -> list[dict[str, Any]]:
        found = await self.world.store.find(occurrences.COLLECTION, Query(by(vnfInstanceId=self.id)))
        return [cast("dict[str, Any]", each.body) for each in found if each.body["operation"] == operation]

    async def level(self) -> int:
        shown = (await self.world.lcm("GET", f"/vnf_instances/{self.id}")).must(200).json
        return int(shown["instantiatedVnfInfo"]["scaleStatus"][0]["scaleLevel"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a gateway in which the VNF is INSTANTIATED."""
    folder = tmp_path_factory.mktemp("built")
    async with lcm_world(folder) as world:
        await world.sample()
        allowed = {"isAutohealEnabled": True, "isAutoscaleEnabled": True}
        operation = await world.instantiate(await world.create(), vnfConfigurableProperties=allowed)
        await world.reached(operation, "COMPLETED")
    return folder


@asynccontextmanager
async def living(
    folder: Path,
    clock: SetClock | None = None,
    storage: Storage = Storage(),  # noqa: B008 - frozen
    **rules: Any,
) -> AsyncIterator[Vnf]:
    clock = clock or SetClock()
    async with lcm_world(folder, storage, clock=clock, **rules) as world:
        (stored,) = await world.store.find(instances.COLLECTION, Query())
        vnfcs = [each["id"] for each in stored.body["instantiatedVnfInfo"]["vnfcInfo"]]
        yield Vnf(world, stored.id, vnfcs, clock)


@asynccontextmanager
async def a_copy(built: Path, tmp_path: Path, **rules: Any) -> AsyncIterator[Vnf]:
    shutil.copytree(built, tmp_path / "world")
    async with living(tmp_path / "world", **rules) as vnf:
        yield vnf


@pytest.fixture
async def vnf(built: Path, tmp_path: Path) -> AsyncIterator[Vnf]:
    async with a_copy(built, tmp_path) as running:
        yield running


async def test_vnfcs_that_are_named_in_a_while_are_healed_together_once(vnf: Vnf) -> None:
    """API-235, API-236: each trigger counts once; the operation says that kubevnfm has begun it, and why."""
    world = vnf.world
    decided: list[AutomaticDecided] = []

    async def keep(delivery: Any) -> Any:
        decided.append(delivery.envelope.data)
        return await world.keep(delivery)

    await world.bus.consume_events("tests.automatic", ["lcm.automatic.decided"], keep)
    await vnf.heal(vnf.vnfcs[0])
    await vnf.heal(vnf.vnfcs[0])
    await vnf.heal(vnf.vnfcs[1], fact="fact-2")
    await vnf.pass_time(19)
    (action,) = await vnf.actions()
    assert (action.state, len(action.triggers)) == ("COLLECTING", 2)
    await vnf.pass_time(2)
    action = await vnf.reached("DONE")
    await vnf.heal(vnf.vnfcs[0])
    await vnf.heal("VDU1-replaced-by-the-heal")
    assert [each.id for each in await vnf.actions()] == [action.id], "its trigger is known"
    with pytest.raises(InvalidInput, match="VDU1-replaced-by-the-heal"):
        await vnf.heal("VDU1-replaced-by-the-heal", fact="fact-3")
    (healed,) = [each.data for each in world.twins.commands if isinstance(each.data, HealResources)]
    assert len(healed.servers) == 2
    (operation,) = await vnf.operations("HEAL")
    assert operation["id"] == action.operation_id
    assert operation["isAutomaticInvocation"] is True
    assert operation["operationParams"] == {"vnfcInstanceId": vnf.vnfcs[:2]}
    assert healed.grant_request["isAutomaticInvocation"] is True
    changes = [each for each in world.changes if each.vnf_lcm_op_occ_id == operation["id"]]
    assert {each.is_automatic_invocation for each in changes} == {True}
    reasons = {each.automatic.reason for each in changes if each.automatic is not None}
    assert reasons == {"fact-1 asks for it. (1 further triggers)"}
    view = (await world.call("GET", f"/kubevnfm/v1/operations/{operation['id']}")).must(200).json
    assert view["automatic"] == {
        "trigger": "auto-healing",
        "triggerId": "fact-1",
        "reason": "fact-1 asks for it. (1 further triggers)",
        "actionId": action.id,
    }
    await world.bus.quiet()
    assert [(each.state, each.vnf_lcm_op_occ_id) for each in decided] == [("STARTED", operation["id"])]


async def test_an_aspect_is_scaled_by_one_step_up_to_its_limits(built: Path, tmp_path: Path) -> None:
    """API-237: at a limit nothing is begun, and the action says so; the opposite, asked later, counts."""
    async with a_copy(built, tmp_path, **FREE) as vnf:
        assert await vnf.level() == 0
        await vnf.scale("SCALE_IN", fact="too-low")
        assert "aspect VDU1_scale is at its minimum (level 0)" in str((await vnf.reached("NOT_DONE")).reason)
        for number in (1, 2):
            await vnf.scale(fact=f"high-{number}")
            await vnf.reached("DONE", number=number)
            assert await vnf.level() == number
        await vnf.scale(fact="high-3")
        action = await vnf.reached("NOT_DONE", number=3)
        assert action.reason == "not done: aspect VDU1_scale is at its maximum (level 2)"
        assert action.operation_id is None
        assert len(await vnf.operations("SCALE")) == 2


async def test_of_two_pending_scalings_in_opposite_directions_the_later_one_counts(built: Path, tmp_path: Path) -> None:
    """API-237."""
    async with a_copy(built, tmp_path, **FREE) as vnf:
        vnf.world.twins.waiting.add(HEAL_COMMAND)
        by_hand = await vnf.world.ask(vnf.id, "heal", {"vnfcInstanceId": vnf.vnfcs[:1]})
        await vnf.world.reached(by_hand, "PROCESSING")
        await vnf.scale("SCALE_IN", fact="low")
        await vnf.scale(fact="high")
        await vnf.scale(fact="higher")
        await vnf.reached("WAITING", number=1)
        await vnf.world.twins.release()
        last = await vnf.reached("DONE", number=1)
        first = await vnf.reached("NOT_DONE")
        assert first.reason == f"the opposite was asked for later, by action {last.id}"
        assert (await vnf.level(), len(last.triggers)) == (1, 2)


async def test_it_waits_for_another_operation_and_begins_when_that_has_ended(built: Path, tmp_path: Path) -> None:
    """API-238: the action says for what it waits and since when; a FAILED_TEMP operation is waited for, too."""
    async with a_copy(built, tmp_path, **FREE) as vnf:
        vnf.world.twins.failing.add(SCALE_COMMAND)
        body = {"type": "SCALE_OUT", "aspectId": ASPECT}
        by_hand = await vnf.world.ask(vnf.id, "scale", body)
        await vnf.world.reached(by_hand, "FAILED_TEMP")
        await vnf.heal()
        action = await vnf.reached("WAITING")
        assert action.waiting is not None
        assert (action.waiting.what, action.waiting.operation_id) == ("OPERATION", by_hand)
        assert "FAILED_TEMP" in action.waiting.text
        await vnf.heal(vnf.vnfcs[1], fact="fact-2")
        (await vnf.world.lcm("POST", f"/vnf_lcm_op_occs/{by_hand}/rollback")).must(202)
        action = await vnf.reached("DONE")
        assert action.vnfc_ids == tuple(vnf.vnfcs[:2]), (
            "a VNFC that was named while it waited is healed with the others"
        )
        assert len(await vnf.operations("HEAL")) == 1


async def test_it_gives_up_when_it_has_waited_too_long(built: Path, tmp_path: Path) -> None:
    """API-238."""
    async with a_copy(built, tmp_path, **NOW, automatic_wait_s=60.0) as vnf:
        vnf.world.twins.waiting.add(SCALE_COMMAND)
        by_hand = await vnf.world.ask(vnf.id, "scale", {"type": "SCALE_OUT", "aspectId": ASPECT})
        await vnf.world.reached(by_hand, "PROCESSING")
        await vnf.heal()
        await vnf.reached("WAITING")
        await vnf.pass_time(61)
        action = await vnf.reached("NOT_DONE")
        assert str(action.reason).startswith(f"gave up after 60 s: operation SCALE (occurrence {by_hand}, PROCESSING)")
        await vnf.world.twins.release()
        await vnf.world.reached(by_hand, "COMPLETED")
        assert await vnf.operations("HEAL") == []


async def test_a_cool_down_and_the_budget_of_an_hour_delay_operations(built: Path, tmp_path: Path) -> None:
    """API-239: the cool-down counts from the end of the last one of its kind, the budget by the instance."""
    async with a_copy(built, tmp_path, **NOW, automatic_operations_per_hour=2, automatic_wait_s=7200.0) as vnf:
        await vnf.heal(fact="a")
        await vnf.reached("DONE")
        await vnf.scale(fact="b")
        await vnf.reached("DONE", number=1)
        await vnf.heal(fact="c")
        action = await vnf.reached("WAITING", number=2)
        assert action.waiting is not None
        assert action.waiting.what == "COOL_DOWN"
        await vnf.pass_time(310)
        action = await vnf.reached("WAITING", number=2)
        assert action.waiting is not None
        assert action.waiting.what == "BUDGET"
        assert "were reached (2)" in action.waiting.text
        await vnf.pass_time(3300)
        action = await vnf.reached("DONE", number=2)
        assert len(await vnf.operations("HEAL")) == 2


async def test_the_trial_mode_records_what_would_be_done(built: Path, tmp_path: Path) -> None:
    """API-240: with the same limits, and nothing is begun."""
    async with a_copy(built, tmp_path, **NOW, automatic_mode="trial") as vnf:
        await vnf.heal()
        action = await vnf.reached("TRIAL")
        assert action.reason == f"trial: would begin HEAL of VNFC {vnf.vnfcs[0]}, because fact-1 asks for it."
        await vnf.heal(fact="fact-2")
        action = await vnf.reached("WAITING", number=1)
        assert action.waiting is not None
        assert action.waiting.what == "COOL_DOWN"
        assert await vnf.operations("HEAL") == []


async def test_what_an_instance_does_not_allow_or_have_is_refused(built: Path, tmp_path: Path) -> None:
    """API-241: nothing is stored then."""
    async with a_copy(built, tmp_path) as vnf:
        automatic, trigger = vnf.world.automation.automatic, Trigger("auto-healing", "f", "text")
        with pytest.raises(NotFound):
            await automatic.heal("no-such", ["x"], trigger)
        with pytest.raises(InvalidInput, match=r"vnfcInstanceId\[1\]: the VNF has no VNFC x"):
            await automatic.heal(vnf.id, [vnf.vnfcs[0], "x"], trigger)
        with pytest.raises(InvalidInput, match="vnfcInstanceId: at least one"):
            await automatic.heal(vnf.id, [], trigger)
        with pytest.raises(InvalidInput, match="aspectId: the VNFD has no scaling aspect x; it has VDU1_scale"):
            await vnf.scale(aspect="x")
        off = {"vnfConfigurableProperties": {"isAutohealEnabled": False, "isAutoscaleEnabled": None}}
        patched = await vnf.world.lcm(
            "PATCH", f"/vnf_instances/{vnf.id}", off,
            headers={"Version": "2.0.0", "Content-Type": "application/merge-patch+json"},
        )  # fmt: skip
        await vnf.world.reached(patched.must(202).headers["Location"].rpartition("/")[2], "COMPLETED")
        with pytest.raises(Conflict, match="isAutohealEnabled of the VNF instance: true expected"):
            await vnf.heal()
        with pytest.raises(Conflict, match="isAutoscaleEnabled of the VNF instance: true expected"):
            await vnf.scale()
        other = await vnf.world.create()
        with pytest.raises(Conflict, match="NOT_INSTANTIATED; INSTANTIATED expected"):
            await automatic.heal(other, ["x"], trigger)
        assert await vnf.actions() == []


async def test_an_action_ends_with_its_instance_or_with_the_permission(vnf: Vnf) -> None:
    """API-242: also if that changes while it waits."""
    await vnf.heal()
    operation = await vnf.world.ask(vnf.id, "terminate", {"terminationType": "FORCEFUL"})
    await vnf.world.reached(operation, "COMPLETED")
    await vnf.pass_time(21)
    assert (await vnf.reached("NOT_DONE")).reason == "the VNF instance is NOT_INSTANTIATED"


async def test_a_vnfc_that_was_replaced_meanwhile_is_left_out(vnf: Vnf) -> None:
    """API-242: the others are healed."""
    await vnf.heal(*vnf.vnfcs[:2])
    (action,) = await vnf.actions()
    stored = await vnf.world.store.get(COLLECTION, action.id)
    assert stored is not None
    triggers = [{**stored.body["triggers"][0], "vnfcIds": ["VDU1-replaced", vnf.vnfcs[0]]}]
    await vnf.world.store.update(COLLECTION, action.id, {"triggers": triggers})
    await vnf.pass_time(21)
    action = await vnf.reached("DONE")
    assert action.vnfc_ids == (vnf.vnfcs[0],)
    assert [each.reason for each in action.left_out] == ["VNFC VDU1-replaced is not a part of the VNF any more"]


async def test_a_vnfc_that_is_replaced_after_the_decision_is_left_out(vnf: Vnf) -> None:
    """API-242: another operation was faster than the one that was decided."""
    await vnf.heal(*vnf.vnfcs[:2])
    (action,) = await vnf.actions()
    stored = await vnf.world.store.get(COLLECTION, action.id)
    assert stored is not None
    named = ["VDU1-replaced", vnf.vnfcs[0]]
    decided = {
        "internal/decidedAt": action.created_at,
        "vnfcIds": named,
        "triggers": [{**stored.body["triggers"][0], "vnfcIds": named}],
    }
    await vnf.world.store.update(COLLECTION, action.id, decided)
    await vnf.pass_time(21)
    action = await vnf.reached("DONE")
    (operation,) = await vnf.operations("HEAL")
    assert operation["operationParams"] == {"vnfcInstanceId": [vnf.vnfcs[0]]}
    assert action.vnfc_ids == (vnf.vnfcs[0],)


async def test_a_storm_of_alerts_about_the_same_vnfcs_does_not_grow_the_action(vnf: Vnf) -> None:
    """API-235: a write of it has all its triggers. Those that name further VNFCs are kept."""
    for number in range(110):
        await vnf.heal(vnf.vnfcs[0], fact=f"fact-{number}")
    await vnf.heal(vnf.vnfcs[1], fact="another")
    (action,) = await vnf.actions()
    assert [each.id for each in action.triggers[-2:]] == ["fact-99", "another"]
    await vnf.pass_time(21)
    assert (await vnf.reached("DONE")).vnfc_ids == tuple(vnf.vnfcs[:2])


async def test_a_fact_that_lasts_longer_than_its_action_and_the_cool_down_counts_again(
    built: Path, tmp_path: Path
) -> None:
    """API-235: a load that stays high scales again; two senders of the same count once, and at the limit nothing is stored."""
    async with a_copy(built, tmp_path, **NOW) as vnf:
        await vnf.scale()
        await vnf.reached("DONE")
        await vnf.pass_time(110)
        await vnf.scale()
        assert len(await vnf.actions()) == 1, "within the cool-down"
        await vnf.pass_time(11)
        await asyncio.gather(vnf.scale(), vnf.scale())
        again = await vnf.reached("DONE", number=1)
        await vnf.scale()
        assert (await vnf.level(), len(await vnf.actions()), again.text) == (2, 2, "fact-1 asks for it.")
        await vnf.pass_time(1000)
        await vnf.scale()
        assert len(await vnf.actions()) == 2, "at its maximum a repetition has nothing to ask for"
        await vnf.heal(kind="threshold")
        await vnf.reached("DONE", number=2)
        await vnf.pass_time(1000)
        await vnf.heal(kind="threshold")
        assert len(await vnf.actions()) == 3, "a crossing is reported once"


async def test_without_a_cool_down_two_senders_count_once_as_well(built: Path, tmp_path: Path) -> None:
    """API-235."""
    async with a_copy(built, tmp_path, **FREE) as vnf:
        await vnf.heal()
        await vnf.reached("DONE")
        await vnf.pass_time(50)
        await vnf.heal()
        assert len(await vnf.actions()) == 1
        await vnf.pass_time(11)
        await vnf.heal()
        await vnf.reached("DONE", number=1)


async def test_an_operation_that_fails_is_seen_and_not_repeated(built: Path, tmp_path: Path) -> None:
    """API-242: while it is FAILED_TEMP a person decides; given up, the action is not done."""
    async with a_copy(built, tmp_path, **FREE) as vnf:
        vnf.world.twins.failing.add(HEAL_COMMAND)
        await vnf.heal()

        async def has_failed() -> Action | None:
            await vnf.world.automation.work.look()
            (action,) = await vnf.actions()
            return action if action.operation_state == "FAILED_TEMP" else None

        action = await until(has_failed, timeout_s=60, pause_s=0.01)
        assert action.state == "STARTED"
        (await vnf.world.lcm("POST", f"/vnf_lcm_op_occs/{action.operation_id}/fail")).must(200)
        action = await vnf.reached("NOT_DONE")
        assert f"HEAL {action.operation_id} ended FAILED: " in str(action.reason)
        assert len(await vnf.operations("HEAL")) == 1


def sharing(vnf: Vnf) -> Storage:
    """Return the storage of another gateway on the same database."""

    class Shared(FragileStore):
        @classmethod
        @asynccontextmanager
        async def open(cls, path: Path) -> AsyncIterator[Any]:
            yield vnf.world.store

    return Storage(kind=Shared)


async def test_two_gateways_begin_one_operation(built: Path, tmp_path: Path) -> None:
    """API-243: both get the same triggers, and look at the action at the same time."""
    async with (
        a_copy(built, tmp_path, **FREE) as first,
        living(tmp_path / "world", storage=sharing(first), **FREE) as second,
    ):
        gateways = (first, second)
        await asyncio.gather(*(each.heal(fact=fact) for each in gateways for fact in ("a", "b")))
        await asyncio.gather(*(each.world.automation.work.look() for each in gateways for _ in range(3)))

        async def all_done() -> bool:
            await asyncio.gather(*(each.world.automation.work.look() for each in gateways))
            return {each.state for each in await gateways[0].actions()} == {"DONE"}

        await until_true(all_done)
        actions, heals = await gateways[0].actions(), await gateways[0].operations("HEAL")
        assert len(heals) == len(actions)
        asked = [each.id for action in actions for each in action.triggers]
        assert sorted(asked) == ["a", "b"]


class DyingStore(FragileStore, WatchedStore):
    """A store that does nothing any more from one of its writes on."""

    writes_left: int | None = None
    dies_before = True
    is_dead = False

    def _answer(self) -> None:
        if self.is_dead:
            raise StoreUnavailable("the process was killed")
        super()._answer()

    def before_write(self) -> None:
        if self.is_dead:
            raise StoreUnavailable("the process was killed")
        if self.writes_left is not None and self.dies_before:
            self._count()
        if self.is_dead:
            raise StoreUnavailable("the process was killed")

    def after_write(self, *_: Any) -> None:
        if self.writes_left is not None and not self.dies_before and not self.is_dead:
            self._count()

    async def clear_outbox(self, collection: str, published: Mapping[str, Sequence[str]]) -> None:
        self._answer()
        await super().clear_outbox(collection, published)

    def _count(self) -> None:
        assert self.writes_left is not None
        self.writes_left -= 1
        self.is_dead = self.writes_left == 0


async def a_death(built: Path, folder: Path, number: int, *, before: bool) -> bool:
    """Kill the gateway at one of its writes; repeat the request as its sender does. Return whether it has died."""
    shutil.copytree(built, folder)
    storage = Storage(kind=DyingStore)
    async with living(folder, storage=storage, **FREE) as vnf:
        store = cast("DyingStore", vnf.world.store)
        published = vnf.world.bus.publish

        async def publish(envelope: Any) -> None:
            if not store.is_dead:
                await published(envelope)

        setattr(vnf.world.bus, "publish", publish)  # noqa: B010
        store.dies_before, store.writes_left = before, number

        async def is_over() -> bool:
            if store.is_dead:
                return True
            try:
                actions = await vnf.actions()
            except StoreUnavailable:
                return True
            return bool(actions) and actions[0].state == "DONE"

        with suppress(StoreUnavailable):
            await vnf.heal()
        await until_true(is_over)
        has_died = store.is_dead
    async with living(folder, **FREE) as vnf:
        await vnf.heal()
        action = await vnf.reached("DONE")
        assert len(await vnf.actions()) == 1
        (heal,) = await vnf.operations("HEAL")
        assert (heal["id"], heal["operationState"]) == (action.operation_id, "COMPLETED")
    return has_died


MOMENTS: Sequence[int] = range(1, 9)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("number", MOMENTS)
async def test_a_kill_at_any_write_repeats_and_loses_no_heal(
    built: Path, tmp_path: Path, number: int, before: bool
) -> None:
    """API-243: the trigger is repeated by its sender, as it got no answer, or had got one."""
    assert await a_death(built, tmp_path / "world", number, before=before)


async def test_old_actions_are_removed(built: Path, tmp_path: Path) -> None:
    """API-244: a new one with the number of one that was removed begins another operation."""
    async with a_copy(built, tmp_path, **FREE) as vnf:
        await vnf.heal()
        first = await vnf.reached("DONE")
        vnf.clock.ahead_s += timedelta(days=31).total_seconds()
        await vnf.world.automation.actions.remove_old(timedelta(days=30))
        assert await vnf.actions() == []
        await vnf.heal(fact="later")
        again = await vnf.reached("DONE")
        assert again.operation_id != first.operation_id
        changed = [
            each for each in vnf.world.changes if isinstance(each, OperationChanged) and each.operation == "HEAL"
        ]
        assert {each.vnf_lcm_op_occ_id for each in changed} == {first.operation_id, again.operation_id}


async def actions_at(vnf: Vnf, query: str = "") -> list[dict[str, Any]]:
    """Return the actions as the gateway lists them."""
    page = (await vnf.world.call("GET", f"/kubevnfm/v1/automatic-actions{query}")).must(200).json
    return cast("list[dict[str, Any]]", page["items"])


async def test_actions_are_listed_shown_and_cancelled(vnf: Vnf) -> None:
    """API-245, API-246: by state and VNF instance; one that has begun or ended cannot be cancelled."""
    await vnf.heal(*vnf.vnfcs[:2])
    (shown,) = await actions_at(vnf, f"?vnfInstanceId={vnf.id}&state=COLLECTING,WAITING")
    assert (shown["operation"], shown["text"]) == ("HEAL", "fact-1 asks for it.")
    assert shown["triggers"][0]["vnfcIds"] == vnf.vnfcs[:2]
    path = f"/kubevnfm/v1/automatic-actions/{shown['id']}"
    assert (await vnf.world.call("GET", path)).must(200).json == shown
    assert await actions_at(vnf, "?state=DONE") == await actions_at(vnf, "?vnfInstanceId=other") == []
    (await vnf.world.call("DELETE", path)).must(204)
    (await vnf.world.call("DELETE", path)).problem(409)
    (await vnf.world.call("GET", "/kubevnfm/v1/automatic-actions/none")).problem(404)
    (shown,) = await actions_at(vnf, f"?id={shown['id']}")
    assert (shown["state"], shown["reason"]) == ("NOT_DONE", "cancelled by anybody")
    await vnf.pass_time(21)
    assert await vnf.operations("HEAL") == []
    vnf.world.twins.waiting.add(SCALE_COMMAND)
    by_hand = await vnf.world.ask(vnf.id, "scale", {"type": "SCALE_OUT", "aspectId": ASPECT})
    await vnf.scale()
    waiting = await vnf.reached("WAITING", number=1)
    (shown,) = await actions_at(vnf, "?state=WAITING")
    assert (shown["waiting"]["for"], shown["waiting"]["operationId"]) == ("OPERATION", by_hand)
    assert shown["id"] == waiting.id
    await vnf.world.twins.release()


async def lose(vnf: Vnf, *servers: str) -> None:
    """Report servers of the VNF as lost; none: as present again."""
    stored = await vnf.world.store.get(instances.COLLECTION, vnf.id)
    assert stored is not None
    drift = StackDrift(state="INCOMPLETE", servers=servers) if servers else None
    finding = StackFinding(
        vnf_instance_id=vnf.id, revision=stored.revision, drift=drift, reason="the server does not exist"
    )
    await vnf.world.bus.publish(
        Envelope(data=StacksCompared(findings=(finding,)), source="/kubevnfm/infra-openstack", subject=vnf.id)
    )
    await vnf.world.bus.quiet()


async def server_of(vnf: Vnf, number: int) -> str:
    stored = await vnf.world.store.get(instances.COLLECTION, vnf.id)
    assert stored is not None
    return str(stored.body["instantiatedVnfInfo"]["vnfcResourceInfo"][number]["computeResource"]["resourceId"])


async def test_a_machine_that_is_lost_for_a_while_is_healed(vnf: Vnf) -> None:
    """API-247: by the alarm of kubevnfm itself. One that comes back meanwhile is left alone."""
    first, second = await server_of(vnf, 0), await server_of(vnf, 1)
    await lose(vnf, first)

    async def asked(number: int) -> bool | None:
        return len(await vnf.actions()) == number or None

    await until(lambda: asked(1))
    await lose(vnf)
    await vnf.pass_time(61)
    action = await vnf.reached("NOT_DONE")
    assert "was cleared" in str(action.reason)
    assert await vnf.operations("HEAL") == []

    await lose(vnf, second)
    await until(lambda: asked(2))
    await vnf.pass_time(50)
    assert (await vnf.actions())[1].state == "COLLECTING"
    await vnf.pass_time(11)
    action = await vnf.reached("DONE", number=1)
    assert [each.kind for each in action.triggers] == ["alarm"]
    (healed,) = [each.data for each in vnf.world.twins.commands if isinstance(each.data, HealResources)]
    assert healed.servers == (second,)


async def test_no_text_of_a_monitoring_system_makes_its_alarm_one_of_ours(vnf: Vnf) -> None:
    """API-247: it chooses the words, and asks for a heal by another path."""
    await vnf.world.bus.quiet()
    for number, fault_type in enumerate(("machine-lost", "workload-troubled")):
        lost = fault(vnf.id, labels={"pod": await server_of(vnf, 0)}, fingerprint=f"f{number}")
        lost["annotations"]["fault_type"] = fault_type
        (await vnf.world.call("POST", "/alert", message(lost))).must(204)
    await vnf.world.bus.quiet()
    listed = (await vnf.world.call("GET", "/vnffm/v1/alarms", headers={"Version": "1.5.0"})).must(200).json
    assert sorted(each["faultType"] for each in listed) == ["machine-lost", "workload-troubled"]
    assert await vnf.actions() == []


@dataclass(frozen=True)
class Crossed:
    """A crossing of a threshold."""

    object_instance_id: str
    metadata: dict[str, Any]
    direction: Literal["UP", "DOWN"] = "UP"
    id: str = "crossing-1"
    threshold_id: str = "threshold-1"
    metric: str = "VCpuUsageMeanVnf"
    value: float = 91.5
    sub_object_instance_id: str | None = None


async def test_a_crossing_does_what_the_metadata_of_its_threshold_ask_for(built: Path, tmp_path: Path) -> None:
    """API-248: once for each crossing; without `automation` nothing is done."""
    async with a_copy(built, tmp_path, **FREE) as vnf:
        act = vnf.world.automation.crossings.act
        wanted = {"automation": {"aspectId": ASPECT, "onUp": "SCALE_OUT"}}
        await act(Crossed(vnf.id, {}))
        await act(Crossed(vnf.id, wanted, "DOWN"))
        assert await vnf.actions() == []
        await act(Crossed(vnf.id, wanted))
        await act(Crossed(vnf.id, wanted))
        action = await vnf.reached("DONE")
        assert action.text == "VCpuUsageMeanVnf is 91.5: the threshold threshold-1 was crossed UP."
        assert (await vnf.level(), len(await vnf.actions())) == (1, 1)
        await act(Crossed(vnf.id, {"automation": {"onUp": "HEAL"}}, sub_object_instance_id=vnf.vnfcs[0]))
        assert (await vnf.reached("DONE", number=1)).vnfc_ids == (vnf.vnfcs[0],)
        check = vnf.world.automation.crossings.check
        await check(vnf.id, {}, is_of_vnfcs=False)
        await check(vnf.id, wanted, is_of_vnfcs=False)
        await check(vnf.id, {"automation": {"onDown": "HEAL"}}, is_of_vnfcs=True)
        for wrong, place in (
            ("SCALE_OUT", "metadata/automation"),
            ({}, "metadata/automation"),
            ({"aspectId": ASPECT, "onUp": None}, "metadata/automation"),
            ({"onUp": "x"}, "metadata/automation/onUp"),
            ({"onUp": "HEAL"}, "metadata/automation/onUp"),
            ({"onUp": "SCALE_OUT"}, "metadata/automation/aspectId"),
            ({"onUp": "SCALE_OUT", "aspectId": ASPECT, "ondown": "SCALE_IN"}, "metadata/automation/ondown"),
        ):
            with pytest.raises(InvalidInput, match=f"^{place}: "):
                await act(Crossed(vnf.id, {"automation": wrong}))
            with pytest.raises(InvalidInput, match=f"^{place}: "):
                await check(vnf.id, {"automation": wrong}, is_of_vnfcs=False)
