"""A stack before its change, and the requests to Heat that carry out a command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kubevnfm_events.stacks import StackResources
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_infra_openstack.domain.definitions import nested
from kubevnfm_infra_openstack.domain.handover import lost_with
from kubevnfm_infra_openstack.domain.hot import PORT, resources_of
from kubevnfm_infra_openstack.domain.rolling import ReadDefinition
from kubevnfm_infra_openstack.domain.stack import HeatResource, Stack, StackChange, StackContents, StackDefinition

KEEP: Final = "x_keep_volume"
"""A parameter of HEAL: whether the volumes of replaced machines stay with their data."""


@dataclass(frozen=True)
class LiveStack:
    """A stack before its change."""

    stack: Stack
    definition: StackDefinition
    contents: StackContents
    facts: StackResources

    @property
    def counts(self) -> Mapping[str, int]:
        """Servers by VDU."""
        return Counter(server.vdu_id for server in self.facts.servers)


@dataclass(frozen=True)
class Wanted:
    """The requests to Heat that carry out a command."""

    change: StackChange
    unhealthy: Sequence[HeatResource] = ()
    """Resources to mark first, so that Heat replaces them, or removes them first from their group."""
    finish: StackChange | None = None
    """The change that follows once this one is complete."""
    leaving_first: Sequence[str] = ()
    """Ids of the servers to delete in Nova before the request; Heat makes them again."""


async def check_kept(live: LiveStack, servers: Collection[str]) -> None:
    """Raise Unprocessable if volumes that have to stay go with these servers."""
    form = await read_definition(live.definition)
    lost = sorted(lost_with(live.stack, live.contents, lambda _: form, servers))
    if lost:
        why = f"true, but the template has delete_on_termination for {', '.join(lost)}: Nova deletes it with its server"
        raise Unprocessable(f"additionalParams/{KEEP}", why)


def whole_parts(facts: StackResources, servers: Collection[str]) -> frozenset[str]:
    """Return the parts of the stack all of whose servers are among these."""
    others = {server.group or server.name for server in facts.servers if server.server_id not in servers}
    return frozenset(server.group or server.name for server in facts.servers) - others


def without_lost_ports(live: LiveStack) -> StackDefinition:
    """Return the stack's definition without ports that were never made: a retry may need another address than they have."""
    made = {
        one.name
        for one in live.contents.resources
        if one.stack_id == live.stack.id and one.physical_id in live.contents.port_by_id
    }
    template = live.definition.template
    resources = {n: one for n, one in resources_of(template).items() if one.get("type") != PORT or n in made}
    return replace(live.definition, template={**template, "resources": resources})


async def read_definition(definition: StackDefinition) -> ReadDefinition:
    """Return the definition with its nested templates read."""
    return ReadDefinition(definition, await nested(definition.files))
