"""Change of the external connectivity (SOL003 5.4.11): merges the present links with those of the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubevnfm_sol.connection_points import merged_links
from kubevnfm_sol.connectivity import ExtVirtualLinkData
from kubevnfm_sol.lcm import ChangeExtVnfConnectivityRequest, OperationType

from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.vim_choice import VimEntries
from kubevnfm_lcm_api.lifecycle.machines.asked_links import check_links
from kubevnfm_lcm_api.lifecycle.machines.changing import ConnectVmDraft
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_user_data
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange


async def connected_machines(
    packages: PackageCatalogue,
    vim_entries: VimEntries,
    vnf: VnfUnderChange,
    asked: Asked[ChangeExtVnfConnectivityRequest],
) -> ConnectVmDraft:
    """Return the draft. Raises InvalidInput and Unprocessable for links that cannot be made."""
    before = vnf.record.internals.connections
    links = changed_links(before.get("extVirtualLinks") or (), asked.request.ext_virtual_links)
    files = await packages.file_names(vnf.package.package_id)
    connected = await vnf.connections(vim_entries, asked.request.vim_connection_info, asked.version)
    parameters = asked.request.additional_params
    hot = await packages.base_hot(vnf.package.package_id, vnf.flavour.flavour_id)
    change = vnf.change(asked, OperationType.CHANGE_EXT_CONN, parameters, files, connected)
    rules = vnf.link_rules(vnf.flavour, hot, has_user_data=change.user_data is not None)
    check_links(asked.request.ext_virtual_links, rules, after=links)
    await check_user_data(packages, change)
    return ConnectVmDraft(**{**vars(change), "connections": {**before, "extVirtualLinks": links}})


def changed_links(present: Sequence[Mapping[str, Any]], wanted: Sequence[ExtVirtualLinkData]) -> list[dict[str, Any]]:
    """Return the links after a request for a change, in which what is not named stays."""
    bodies = [link.model_dump(mode="json", by_alias=True, exclude_unset=True) for link in wanted]
    return merged_links(present, bodies, keeps_configs=True)
