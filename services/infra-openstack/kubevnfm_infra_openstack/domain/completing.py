"""Completes a change of a stack: with the servers that have to be deleted before it, what is lost with them, and for groups that failed."""

from __future__ import annotations

from dataclasses import replace

from kubevnfm_infra_openstack.domain.definitions import completed, nested
from kubevnfm_infra_openstack.domain.groups import repairing
from kubevnfm_infra_openstack.domain.handover import leaving_first, lost_with
from kubevnfm_infra_openstack.domain.hot import SERVER, VOLUME
from kubevnfm_infra_openstack.domain.live import LiveStack, Wanted, read_definition
from kubevnfm_infra_openstack.domain.resources import unfinished_groups
from kubevnfm_infra_openstack.domain.rolling import ReadDefinition
from kubevnfm_infra_openstack.domain.snapshots import StackBefore


async def in_order(wanted: Wanted, live: LiveStack, before: StackBefore) -> Wanted:
    """Return the change with all servers that have to be deleted before it, since Heat makes new servers first.

    The volumes that Nova deletes with them, or has deleted with servers that are gone, are made again.

    ``before``: the stack at the operation's start.
    """
    contents = live.contents
    is_free = not any(server.volume_ids or server.status == "ERROR" for server in contents.server_by_id.values())
    if is_free and not any(r.type == SERVER for r in wanted.unhealthy):
        return wanted
    new = await read_definition(await completed(wanted.change, live.definition))
    now, then = await read_definition(live.definition), await read_definition(before.definition)

    def form_of(server_id: str) -> ReadDefinition:
        # A try that failed has given the stack its new definition, and left servers that still have the earlier one.
        return then if server_id in before.slot_by_server else now

    found = leaving_first(live.stack, contents, form_of, new)
    volumes = {r.physical_id for r in contents.resources if r.type == VOLUME}
    # Their replacements failed, and those that come now need these volumes.
    left = [
        r.physical_id
        for r in contents.replaced
        if r.type == SERVER and volumes.intersection(contents.server_by_id[r.physical_id].volume_ids)
    ]
    going = dict.fromkeys((*wanted.leaving_first, *(r.physical_id for r in found), *left))
    marked = [*wanted.unhealthy, *(r for r in found if r not in wanted.unhealthy)]
    gone = {*going, *(r.physical_id for r in marked if r.type == SERVER)}
    lost = lost_with(live.stack, contents, form_of, gone)
    marked += [r for r in contents.resources if r.type == VOLUME and r.physical_id in lost and r not in marked]
    return replace(wanted, unhealthy=marked, leaving_first=tuple(going))


async def repaired(wanted: Wanted, live: LiveStack, made_by: str) -> Wanted:
    """Return the change such that it reaches the members of groups whose last change did not succeed."""
    groups = unfinished_groups(live.stack, live.contents.resources)
    if not groups:
        return wanted
    after = await completed(wanted.change, live.definition)
    change = repairing(wanted.change, after, await nested(after.files), groups, mark=made_by)
    return replace(wanted, change=change)
