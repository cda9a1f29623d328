"""Which stacks and servers a comparison reports, by the rule alone and over OpenStack's protocols in the lab."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Envelope
from kubevnfm_events.stacks import CompareStacks, ExpectedStack, StackDrift, StackFinding, StacksCompared
from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.comparison_handler import ComparisonHandler
from kubevnfm_infra_openstack.domain.comparison import finding_of
from kubevnfm_infra_openstack.domain.ports import Clouds, StackPort
from kubevnfm_infra_openstack.domain.stack import SETTLED, Stack, StackOrder, StackState
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lab.lab import Lab, LabSettings
from kubevnfm_lab.openstack.settings import CloudSettings
from kubevnfm_secrets import KeyRing
from worlds.given_vims import GivenVims
from worlds.stack_world import TwinClouds, openstack_vim

RING = KeyRing.from_text(KeyRing.new_key())
TWO_SERVERS = {
    "heat_template_version": "2018-08-31",
    "resources": {
        name: {
            "type": "OS::Nova::Server",
            "properties": {"image": "ubuntu", "flavor": "m1.tiny", "networks": [{"network": "net0"}]},
        }
        for name in ("one", "two")
    },
}


def expected(stack_id: str = "s1", servers: Sequence[str] = ("a", "b"), **more: Any) -> ExpectedStack:
    return ExpectedStack(
        vnf_instance_id="inst-1", revision=3, stack_id=stack_id, stack_name="vnf-1", servers=tuple(servers), **more
    )


MISSING = StackDrift(state="MISSING")
ALL = {"a": "", "b": ""}


@pytest.mark.parametrize(
    ("state", "statuses", "known", "drift", "reason"),
    [
        (None, {}, None, MISSING, "the stack vnf-1 (s1) does not exist"),
        (StackState.GONE, ALL, None, MISSING, "does not exist"),
        (StackState.BROKEN, ALL, None, StackDrift(state="FAILED"), "Heat reports: no room"),
        (StackState.STUCK, {"a": ""}, None, StackDrift(state="FAILED", servers=("b",)), "server b does not exist"),
        (StackState.READY, {"b": ""}, None, StackDrift(state="INCOMPLETE", servers=("a",)), "server a does not exist"),
        (StackState.READY, {"a": "ERROR", "b": ""}, None, StackDrift(state="INCOMPLETE", servers=("a",)), "in state ERROR"),
        (StackState.READY, ALL, MISSING, None, "exist"),
        (StackState.READY, {"a": "SHUTOFF", "b": ""}, MISSING, None, "exist"),
    ],
)  # fmt: skip
def test_news_are_reported(
    state: StackState | None,
    statuses: dict[str, str],
    known: StackDrift | None,
    drift: StackDrift | None,
    reason: str,
) -> None:
    stack = None if state is None else Stack("s1", "vnf-1", state, reason="no room")
    finding = finding_of(expected(known=known), stack, statuses)
    assert finding is not None
    assert (finding.vnf_instance_id, finding.revision, finding.drift) == ("inst-1", 3, drift)
    assert reason in finding.reason


@pytest.mark.parametrize(
    ("state", "statuses", "known"),
    [
        (StackState.READY, ALL, None),
        (StackState.READY, {"b": ""}, StackDrift(state="INCOMPLETE", servers=("a",))),
        (StackState.MAKING, {}, None),
        (StackState.GOING, {}, None),
        (None, {}, MISSING),
    ],
)
def test_what_is_known_or_undecided_is_not_reported(
    state: StackState | None, statuses: dict[str, str], known: StackDrift | None
) -> None:
    stack = None if state is None else Stack("s1", "vnf-1", state)
    assert finding_of(expected(known=known), stack, statuses) is None


class Comparison:
    """The handler on a bus of its own, and what it publishes."""

    def __init__(self, bus: InProcessBus, clouds: Clouds) -> None:
        self._bus, self._clock = bus, SystemClock()
        self._handler = ComparisonHandler(clouds=clouds, vims=GivenVims(), bus=bus, clock=self._clock)
        self._found: list[StackFinding] = []

    async def start(self) -> None:
        await self._bus.consume_events("found", ["infra.stacks.compared"], self._keep)

    async def findings(self, auth_url: str, *stacks: ExpectedStack, in_s: float = 60.0) -> list[StackFinding]:
        """Return what a command with its deadline in ``in_s`` leads to."""
        self._found.clear()
        command = CompareStacks(vim=openstack_vim(auth_url), expected=stacks)
        deadline = self._clock.now() + timedelta(seconds=in_s)
        envelope = Envelope(data=command, source="/kubevnfm/lcm-api", deadline=deadline)
        assert await self._handler.compare_stacks(Delivery(envelope, 1)) == Ack()
        await self._bus.quiet()
        return list(self._found)

    async def _keep(self, delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, StacksCompared)
        self._found += delivery.envelope.data.findings
        return Ack()


@pytest.fixture
async def bus() -> AsyncIterator[InProcessBus]:
    async with InProcessBus(RING) as bus:
        yield bus


async def test_many_stacks_cost_the_cloud_three_list_calls(bus: InProcessBus) -> None:
    async with (
        Lab.start(LabSettings(cloud=CloudSettings(create_retries=0))) as lab,
        OpenStackClouds(RING, threads=16, call_timeout_s=60) as clouds,
    ):
        comparison = Comparison(bus, clouds)
        await comparison.start()
        port = clouds.cloud(openstack_vim(lab.auth_url)).stacks
        made = [await made_stack(port, f"vnf-{number}") for number in range(4)]
        stacks = [expected(one.id, [r.physical_id for r in await port.resources(one)]) for one in made]
        lab.ledger.clear()
        assert await comparison.findings(lab.auth_url, *stacks) == []
        counted = {call["verb"]: call["count"] for call in lab.ledger.calls() if call["part"] in {"heat", "nova"}}
        assert counted == {"stack_list": 1, "server_list": 2}

        await port.delete(made[0])
        assert await port.settle(made[0], until=frozenset(), within_s=30) is None
        nova, lost, failed = lab.cloud.nova, stacks[1].servers[0], stacks[2].servers[1]
        await nova.destroy(nova.get(lost))
        nova.get(failed).status = "ERROR"
        found = await comparison.findings(lab.auth_url, *stacks)
        assert [one.drift for one in found] == [
            MISSING,
            StackDrift(state="INCOMPLETE", servers=(lost,)),
            StackDrift(state="INCOMPLETE", servers=(failed,)),
        ]
        known = [
            one.model_copy(update={"known": drift})
            for one, drift in zip(stacks, [*(each.drift for each in found), None], strict=True)
        ]
        assert await comparison.findings(lab.auth_url, *known) == []


async def made_stack(port: StackPort, name: str) -> Stack:
    stack = await port.create(StackOrder(name, TWO_SERVERS, {}, {}, ("inst",), timeout_s=60))
    ready = await port.settle(stack, until=SETTLED, within_s=30)
    assert ready is not None
    assert ready.state is StackState.READY, ready
    return ready


async def test_a_command_that_comes_late_and_a_vim_that_is_away_lead_to_no_finding(bus: InProcessBus) -> None:
    clouds = TwinClouds()
    comparison = Comparison(bus, clouds)
    await comparison.start()
    assert await comparison.findings("http://none", expected(), in_s=0.0) == []
    clouds.stacks.is_down = True
    assert await comparison.findings("http://none", expected()) == []
    clouds.stacks.is_down = False
    assert [one.drift for one in await comparison.findings("http://none", expected())] == [MISSING]
