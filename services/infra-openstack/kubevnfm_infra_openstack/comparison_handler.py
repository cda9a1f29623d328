"""The handler that compares many stacks of one VIM with what exists there, by a few list calls for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from kubevnfm_bus.port import Ack, Delivery, MessageBus, Verdict
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events.stacks import CompareStacks, ExpectedStack, StackFinding, StacksCompared
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError

from kubevnfm_infra_openstack.domain.comparison import finding_of
from kubevnfm_infra_openstack.domain.ports import Cloud, Clouds
from kubevnfm_infra_openstack.domain.stack import Stack

log = structlog.get_logger()

SOURCE: Final = "/kubevnfm/infra-openstack"


@dataclass(frozen=True)
class ComparisonHandler:
    """Answers CompareStacks. It stores nothing: lcm-api asks again after a while, so an answer that is lost is repeated."""

    clouds: Clouds
    vims: VimDirectory
    bus: MessageBus
    clock: Clock

    async def compare_stacks(self, delivery: Delivery) -> Verdict:
        """Publish what differs from what is known; nothing if there is no news or the VIM does not answer."""
        command = delivery.envelope.data
        assert isinstance(command, CompareStacks)
        deadline = delivery.envelope.deadline
        # While this service was away, commands have collected; the next one asks the same with newer facts.
        if deadline is not None and deadline <= self.clock.now():
            return Ack()
        try:
            cloud = self.clouds.cloud(await self.vims.connection(command.vim))
            findings = await self._findings(cloud, command.expected)
        except VnfmError as error:
            # Not the stacks' fault: the VIM's own status shows it.
            log.info("stacks_not_compared", vim_id=command.vim.vim_id, reason=str(error))
            return Ack()
        if findings:
            log.info("stacks_differ", vim_id=command.vim.vim_id, stacks=len(findings))
            await self.bus.publish(delivery.envelope.follow_up(StacksCompared(findings=findings), source=SOURCE))
        return Ack()

    async def _findings(self, cloud: Cloud, expected: Sequence[ExpectedStack]) -> tuple[StackFinding, ...]:
        stacks, statuses = await cloud.stacks.all(), await cloud.servers.all_statuses()
        suspects = [one for one in expected if finding_of(one, stacks.get(one.stack_id), statuses) is not None]
        if not suspects:
            return ()
        # A list that changes while it is read can lack an entry, so what seems to be new is read once more by its id.
        stacks, statuses = await self._confirmed(cloud, suspects)
        found = (finding_of(one, stacks.get(one.stack_id), statuses) for one in suspects)
        return tuple(one for one in found if one is not None)

    @staticmethod
    async def _confirmed(
        cloud: Cloud, suspects: Sequence[ExpectedStack]
    ) -> tuple[Mapping[str, Stack], Mapping[str, str]]:
        stacks = await cloud.stacks.by_id([one.stack_id for one in suspects])
        # If a stack does not exist, its servers decide nothing.
        servers = [server for one in suspects if one.stack_id in stacks for server in one.servers]
        return stacks, await cloud.servers.statuses(servers)
