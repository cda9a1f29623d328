"""Scale and scale to level of machines: computes their number and selects those to remove."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kubevnfm_events import ApiVersion
from kubevnfm_events.stacks import ServerFacts
from kubevnfm_sol.lcm import ScaleVnfRequest, ScaleVnfToLevelRequest

from kubevnfm_lcm_api.lifecycle.core.kind import Asked, Levels
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.scale_levels import level_steps, scale_status
from kubevnfm_lcm_api.lifecycle.machines.asked_links import check_added
from kubevnfm_lcm_api.lifecycle.machines.group_sizes import check_group_sizes, check_numbers, stack_values
from kubevnfm_lcm_api.lifecycle.machines.inventory import index_of, machines
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_user_data
from kubevnfm_lcm_api.lifecycle.machines.roles import ROLES
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange


async def scaled_machines(
    packages: PackageCatalogue,
    vnf: VnfUnderChange,
    levels: Levels,
    asked: Asked[ScaleVnfRequest | ScaleVnfToLevelRequest],
) -> ScaleVmDraft:
    """Return the draft of a scaling to these levels. Raises InvalidInput, Unprocessable naming the attribute."""
    wanted = {**vnf.counts, **(levels.counts if levels.counts is not None else _counts(vnf, levels.by_aspect))}
    leaving = leaving_machines(
        machines(vnf.resources),
        wanted,
        is_newest_first=_newest_first(asked.request.additional_params, asked.version),
        numbered=vnf.record.internals.user_data is not None,
    )
    files = await packages.file_names(vnf.package.package_id)
    directed = replace(asked, original={**_direction(vnf.counts, wanted), **asked.original})
    change = vnf.change(directed, levels.operation, asked.request.additional_params, files)
    await check_user_data(packages, change)
    plain = ScaleVmDraft(
        **{**vars(change), "counts": wanted, "scale_status": scale_status(levels.by_aspect)},
        leaving=tuple(server.server_id for servers in leaving.values() for server in servers),
        # Stored, so that the level that a failed scaling has reached is found without the package.
        steps_of=level_steps(vnf.flavour, vnf.scale_levels, levels.by_aspect),
    )
    # In a thread, because a private key may have to be opened with its passphrase.
    scaled = ROLES[vnf.role_name].scaled
    draft = await asyncio.to_thread(scaled, vnf, plain, asked.request.additional_params, levels.place)
    # A VDU whose role in a cluster excludes any scaling is refused before its numbers are.
    check_numbers(levels.place, vnf.flavour, present=vnf.counts, wanted=wanted)
    await _check_hot(packages, vnf, wanted, levels.place, has_user_data=change.user_data is not None)
    return draft


async def _check_hot(
    packages: PackageCatalogue, vnf: VnfUnderChange, wanted: Mapping[str, int], field: str, *, has_user_data: bool
) -> None:
    """Raise Unprocessable for a size that a group of the Base HOT does not allow, and for machines that would have one port's addresses."""
    hot = await packages.base_hot(vnf.package.package_id, vnf.flavour.flavour_id)
    if hot is None:
        return
    internals = vnf.record.internals
    values = stack_values(hot.top, vnf.resources, internals.parameters, has_user_data=internals.user_data is not None)
    check_group_sizes(field, hot, vnf.resources, present=vnf.counts, wanted=wanted, values=values)
    rules = vnf.link_rules(vnf.flavour, hot, has_user_data=has_user_data)
    check_added(field, replace(rules, counts=wanted))


def _counts(vnf: VnfUnderChange, levels: Mapping[str, int]) -> dict[str, int]:
    """Return the machines of the scaled VDUs: the present number and the difference between the levels."""
    # Not the absolute number of the level: two aspects may scale the same VDU, and both differences count.
    counts: dict[str, int] = {}
    for name, level in levels.items():
        aspect = vnf.flavour.aspects[name]
        old = vnf.scale_levels.get(name, 0)
        for vdu_id in aspect.vdu_ids:
            more = aspect.delta(vdu_id, level=level) - aspect.delta(vdu_id, level=old)
            # Not below 0: machines may be missing that the levels count.
            counts[vdu_id] = max(0, counts.get(vdu_id, vnf.counts.get(vdu_id, 0)) + more)
    return counts


def _direction(present: Mapping[str, int], wanted: Mapping[str, int]) -> dict[str, str]:
    """Return the ``type`` of a ScaleVnfRequest with this result; nothing if machines are both added and removed."""
    # Tacker's user data know only scale, not scale to level: they read `type`.
    differences = [count - present[vdu_id] for vdu_id, count in wanted.items()]
    if min(differences, default=0) < 0:
        return {} if max(differences) > 0 else {"type": "SCALE_IN"}
    return {"type": "SCALE_OUT"}


def _newest_first(parameters: Mapping[str, Any], version: ApiVersion) -> bool:
    """As Tacker: v2 removes the newest machines first, v1 the oldest unless ``is_reverse`` is true."""
    return version == "v2" or str(parameters.get("is_reverse")).lower() == "true"


def leaving_machines(
    servers: Sequence[ServerFacts], wanted: Mapping[str, int], *, is_newest_first: bool, numbered: bool
) -> dict[str, list[ServerFacts]]:
    """Return the machines to remove, by VDU. ``numbered``: whether user data have numbered them."""
    # User data count on from the number of machines, so those that they have numbered leave from the end: a healed
    # machine is the newest, whatever its number. Machines of one stack update have the same creation time: of these the
    # numbers decide, and then the id, which makes the order the same at every repeat.
    leaving: dict[str, list[ServerFacts]] = {}
    for vdu_id, count in wanted.items():
        present = [server for server in servers if server.vdu_id == vdu_id]
        index_by_id = {server.server_id: index_of(server) for server in present}
        in_order = sorted(
            present,
            key=lambda server: (
                (index_by_id[server.server_id] or 0) if numbered else 0,
                server.created_at.isoformat() if server.created_at else "",
                index_by_id[server.server_id] or 0,
                server.vnfc_id,
            ),
            reverse=is_newest_first or (numbered and any(index is not None for index in index_by_id.values())),
        )
        if len(in_order) > count:
            leaving[vdu_id] = in_order[: len(in_order) - count]
    return leaving
