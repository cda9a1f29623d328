"""One suite for both StackPorts: the twin of the unit tests, and HeatStacks over the lab."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kubevnfm_infra_openstack.adapters.clouds import OpenStackClouds
from kubevnfm_infra_openstack.adapters.heat import HeatStacks
from kubevnfm_infra_openstack.domain.errors import StackNameTaken
from kubevnfm_infra_openstack.domain.ports import Cloud, StackPort
from kubevnfm_infra_openstack.domain.stack import SETTLED, Stack, StackChange, StackOrder, StackState
from kubevnfm_lab.lab import Lab
from kubevnfm_secrets import KeyRing
from worlds.stack_world import TwinStacks, openstack_vim

TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {"net": {"type": "OS::Neutron::Net"}},
}


def an_order(name: str = "vnf-1", *, tag: str = "inst-1") -> StackOrder:
    return StackOrder(name, TEMPLATE, files={}, parameters={}, tags=(tag, "op-1/create/1"), timeout_s=60)


async def made(stacks: StackPort, order: StackOrder) -> None:
    stack = await stacks.settle(await stacks.create(order), until=SETTLED, within_s=60)
    assert stack is not None
    assert stack.state is StackState.READY


class StackPortSuite:
    @pytest.fixture
    async def stacks(self) -> StackPort:
        raise NotImplementedError

    async def test_a_stack_is_found_by_its_name_and_tag(self, stacks: StackPort) -> None:
        assert await stacks.find("vnf-1", tag="inst-1") is None
        await made(stacks, an_order())
        found = await stacks.find("vnf-1", tag="inst-1")
        assert found is not None
        assert set(found.tags) == {"inst-1", "op-1/create/1"}
        assert found.state is StackState.READY

    async def test_a_stack_without_the_tag_has_another_owner(self, stacks: StackPort) -> None:
        await made(stacks, an_order(tag="inst-2"))
        with pytest.raises(StackNameTaken):
            await stacks.find("vnf-1", tag="inst-1")

    async def test_a_name_can_be_used_once(self, stacks: StackPort) -> None:
        await made(stacks, an_order())
        with pytest.raises(StackNameTaken):
            await stacks.create(an_order())

    async def test_a_deleted_stack_is_gone_and_its_name_free(self, stacks: StackPort) -> None:
        await made(stacks, an_order())
        found = await stacks.find("vnf-1", tag="inst-1")
        assert found is not None
        await stacks.delete(found)
        assert await stacks.settle(found, until=frozenset({StackState.STUCK}), within_s=60) is None
        assert await stacks.find("vnf-1", tag="inst-1") is None
        await stacks.delete(found)
        await made(stacks, an_order())

    async def test_a_change_shows_its_tags_from_the_first_moment(self, stacks: StackPort) -> None:
        await made(stacks, an_order())
        found = await stacks.find("vnf-1", tag="inst-1")
        assert found is not None
        await stacks.change(found, StackChange(("inst-1", "op-2/scale/1"), timeout_s=60))
        begun = await stacks.find("vnf-1", tag="inst-1")
        assert begun is not None
        assert set(begun.tags) == {"inst-1", "op-2/scale/1"}
        settled = await stacks.settle(begun, until=SETTLED, within_s=60)
        assert settled is not None
        assert (settled.state, settled.id) == (StackState.READY, found.id)

    async def test_a_wait_ends_with_the_stack_as_last_seen(self, stacks: StackPort) -> None:
        stack = await stacks.create(an_order())
        still = await stacks.settle(stack, until=frozenset({StackState.STUCK}), within_s=0.2)
        assert still is not None
        assert still.id == stack.id


def lists_of(lab: Lab) -> int:
    calls = lab.ledger.calls()
    return sum(call["count"] for call in calls if (call["part"], call["verb"]) == ("heat", "stack_list"))


class TestTwin(StackPortSuite):
    @pytest.fixture
    async def stacks(self) -> StackPort:
        return TwinStacks()


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with Lab.start() as lab:
        yield lab


@pytest.fixture
async def cloud(lab: Lab) -> AsyncIterator[Cloud]:
    async with OpenStackClouds(KeyRing.from_text(KeyRing.new_key()), threads=16, call_timeout_s=60) as clouds:
        yield clouds.cloud(openstack_vim(lab.auth_url))


class TestHeat(StackPortSuite):
    @pytest.fixture
    async def stacks(self, cloud: Cloud) -> StackPort:
        return cloud.stacks

    async def test_create_waits_for_the_name_of_a_deleted_stack(self, stacks: StackPort, lab: Lab) -> None:
        """On a real Zed, Heat answers 409 to a new stack of the name for a second after DELETE_COMPLETE."""
        lab.cloud.durations.stack_forget_s = 0.3
        await made(stacks, an_order())
        found = await stacks.find("vnf-1", tag="inst-1")
        assert found is not None
        await stacks.delete(found)
        async with asyncio.timeout(60):
            while (ending := await stacks.find("vnf-1", tag="inst-1", is_ending_too=True)) is not None:
                seen = ending.state
        assert seen is StackState.GONE
        assert await stacks.find("vnf-1", tag="inst-2", is_ending_too=True) is None
        assert await stacks.settle(found, until=frozenset({StackState.STUCK}), within_s=60) is None
        await made(stacks, an_order())

    async def test_what_heat_tries_again_is_known_before_it_gives_up(self, stacks: StackPort, lab: Lab) -> None:
        lab.cloud.durations.server_create_s = 0.3
        server = {"image": "ubuntu", "flavor": "m1.impossible", "networks": [{"network": "net0"}]}
        inner = {"type": "OS::Nova::Server", "properties": server}
        group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": inner}}
        stack = await stacks.create(
            replace(an_order(), template={"heat_template_version": "2018-08-31", "resources": {"group": group}})
        )
        seen: set[tuple[StackState, bool]] = set()
        async with asyncio.timeout(60):
            while (StackState.MAKING, True) not in seen:
                known = (await stacks.news(stack)).failure
                now = await stacks.settle(stack, until=SETTLED, within_s=0.05)
                assert now is not None
                assert now.state is StackState.MAKING, seen
                seen.add((now.state, "No valid host was found" in known))
        assert (StackState.MAKING, False) in seen

    async def test_many_stacks_are_watched_with_few_calls(self, stacks: StackPort, lab: Lab) -> None:
        lab.cloud.durations.port_create_s = 0.5
        template = {
            "heat_template_version": "2018-08-31",
            "resources": {"port": {"type": "OS::Neutron::Port", "properties": {"network": "net0"}}},
        }
        orders = [StackOrder(f"s-{n}", template, {}, {}, ("t",), 60) for n in range(30)]
        begun = await asyncio.gather(*map(stacks.create, orders))
        before = lists_of(lab)
        await asyncio.gather(*(stacks.settle(stack, until=SETTLED, within_s=20) for stack in begun))
        assert 0 < lists_of(lab) - before < len(orders)


async def test_calls_side_by_side_do_not_notice_an_expired_token(lab: Lab, cloud: Cloud) -> None:
    """Only the first of several threads that get a 401 makes keystoneauth repeat its call."""
    await cloud.stacks.all()
    for _ in range(3):
        assert lab.cloud.identity.revoke_all()
        assert await asyncio.gather(*(cloud.stacks.all() for _ in range(12))) == [{}] * 12


REASON = 'ResourceInError: resources[0]: Went to status ERROR due to "No valid host"'
FAILED_TWICE = [
    ("0", "CREATE_IN_PROGRESS", "state changed", "server-3"),
    ("0", "DELETE_COMPLETE", "state changed", "server-2"),
    ("0", "DELETE_IN_PROGRESS", "state changed", "server-2"),
    ("0", "CREATE_FAILED", f"{REASON} (HTTP 500) (Request-ID: req-29277418-ea31)", "server-2"),
    ("0", "CREATE_IN_PROGRESS", "state changed", "server-1"),
    ("vnf-1", "CREATE_IN_PROGRESS", "Stack CREATE started", "stack-1"),
]
"""The events of a real Heat, the newest first."""


@pytest.mark.parametrize(
    ("newer", "failure"),
    [
        ([], '0 (OS::Nova::Server): ResourceInError: resources[0]: Went to status ERROR due to "No valid host"'),
        ([("0", "CREATE_COMPLETE", "state changed", "server-3")], ""),
        ([("1", "CREATE_COMPLETE", "state changed", "server-4")], "0 (OS::Nova::Server): ResourceInError: resources[0]: Went to status"),
        ([("1", "CREATE_FAILED", "CREATE aborted (user triggered cancel)", "server-4")], "0 (OS::Nova::Server): ResourceInError"),
        ([("vnf-1", "UPDATE_IN_PROGRESS", "Stack UPDATE started", "stack-1")], ""),
        ([("vnf-1-group", "CREATE_FAILED", f"Resource CREATE failed: resources.x: {REASON}"[:105], "stack-2")], "0 (OS::Nova::Server): ResourceInError"),
        ([("vnf-1", "CREATE_FAILED", "Resource CREATE failed", "stack-1")], "0 (OS::Nova::Server): ResourceInError"),
    ],
)  # fmt: skip
async def test_a_failure_that_a_later_try_has_mended_is_none(
    newer: list[tuple[str, str, str, str]], failure: str
) -> None:
    events = [
        {"resource_name": name, "event_time": "2026-11-28T05:30:00Z", "resource_status": status, "resource_status_reason": reason, "physical_resource_id": physical,
         "links": [{"rel": "resource", "href": f"http://heat.example/{name}"},
                   {"rel": "self", "href": f"http://heat.example/stacks/vnf-1/stack-1/resources/{name}/events/e"}]}
        for name, status, reason, physical in [*newer, *FAILED_TWICE]
    ]  # fmt: skip

    at = {"Date": "Sat, 28 Nov 2026 05:40:00 GMT"}

    class Answering:
        async def call(self, _: str, __: str, path: str, **___: object) -> Any:
            one = {"event": {"resource_type": "OS::Nova::Server"}}
            return SimpleNamespace(
                ok=True, headers=at, json=lambda: one if path.endswith("/0/events/e") else {"events": events}
            )

    tenant: Any = Answering()
    news = await HeatStacks(tenant).news(Stack("stack-1", "vnf-1", StackState.MAKING))
    found = news.failure
    assert (news.silent_s, news.in_work) == (
        600.0,
        [] if newer and newer[0][0] in {"0", "vnf-1"} and "FAILED" not in newer[0][1] else ["0"],
    )
    assert found.startswith(failure)
    assert bool(found) is bool(failure)
    # Each try has another one, and a wait for the same reason began with the first.
    assert "req-" not in found
    # A proxy in front of Heat may write the header.
    for date in ("Sat Nov 28 05:40:00 2026", f"Sat, 28 Nov {'9' * 20} 05:40:00 GMT", "soon"):
        at["Date"] = date
        again = await HeatStacks(tenant).news(Stack("stack-1", "vnf-1", StackState.MAKING))
        assert again == replace(news, silent_s=600.0 if "2026" in date else 0.0)
