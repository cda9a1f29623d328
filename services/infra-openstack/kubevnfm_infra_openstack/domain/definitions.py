"""Complete definitions of stacks: what one has after a change, and what a change needs more than there is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kubevnfm_csar.documents import parse_heat_yaml
from kubevnfm_csar.hot import nested_templates

from kubevnfm_infra_openstack.domain import quota
from kubevnfm_infra_openstack.domain.hot import Template, Templates
from kubevnfm_infra_openstack.domain.ports import Cloud
from kubevnfm_infra_openstack.domain.scaling import present_value
from kubevnfm_infra_openstack.domain.stack import StackChange, StackDefinition, StackOrder


async def completed(change: StackChange, before: StackDefinition) -> StackDefinition:
    """Return the definition that a stack has after the change."""
    template = change.template if change.template is not None else before.template
    body = await parsed(template, "template") if isinstance(template, str) else template
    if change.is_whole:
        return StackDefinition(body, change.parameters, change.files)
    return StackDefinition(body, {**before.parameters, **change.parameters}, {**before.files, **change.files})


async def definition_of(order: StackOrder) -> StackDefinition:
    """Return the definition of the stack that is ordered."""
    body = order.template if isinstance(order.template, Mapping) else await parsed(order.template, "template")
    return StackDefinition(body, order.parameters, order.files)


async def parsed(text: str, name: str) -> Template:
    """Return a template's document, which is read in a thread."""
    return await asyncio.to_thread(parse_heat_yaml, text, name=name)


async def nested(files: Mapping[str, str]) -> Templates:
    """Return those of the files that are templates."""
    return await asyncio.to_thread(nested_templates, files)


async def check_increase(cloud: Cloud, before: StackDefinition, after: StackDefinition) -> None:
    """Raise QuotaExceeded if a stack needs more, in addition to what it has, than the quotas leave free."""
    flavors = await cloud.capacity.flavors()
    known = {name: present_value(before, name) for name in before.parameters}
    had = quota.demand_of(before.template, await nested(before.files), known, flavors)
    wants = quota.demand_of(after.template, await nested(after.files), {**known, **after.parameters}, flavors)
    # Only the increase: the present stack's share is already subtracted from what is free.
    more = {name: amount - had.get(name, 0) for name, amount in wants.items() if amount > had.get(name, 0)}
    if more:
        quota.check(more, await cloud.capacity.free(tuple(more)))
