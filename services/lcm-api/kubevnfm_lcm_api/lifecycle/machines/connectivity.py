"""Change of the external connectivity (SOL003 5.4.11): merges the present links with those of the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubevnfm_sol.lcm import ChangeExtVnfConnectivityRequest, ExtVirtualLinkData, OperationType

from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.vim_choice import VimEntries
from kubevnfm_lcm_api.lifecycle.machines.changing import ConnectVmDraft
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_links, check_user_data
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange

Link = dict[str, Any]


async def connected_machines(
    packages: PackageCatalogue,
    vim_entries: VimEntries,
    vnf: VnfUnderChange,
    asked: Asked[ChangeExtVnfConnectivityRequest],
) -> ConnectVmDraft:
    """Return the draft. Raises InvalidInput for a connection point that the VNFD does not have."""
    check_links(asked.request.ext_virtual_links, vnf.flavour, None)
    before = vnf.record.internals.connections
    links = merged_links(before.get("extVirtualLinks") or (), asked.request.ext_virtual_links)
    files = await packages.file_names(vnf.package.package_id)
    connected = await vnf.connections(vim_entries, asked.request.vim_connection_info, asked.version)
    parameters = asked.request.additional_params
    change = vnf.change(asked, OperationType.CHANGE_EXT_CONN, parameters, files, connected)
    await check_user_data(packages, change)
    return ConnectVmDraft(**{**vars(change), "connections": {**before, "extVirtualLinks": links}})


def merged_links(present: Sequence[Mapping[str, Any]], wanted: Sequence[ExtVirtualLinkData]) -> list[Link]:
    """Return the wanted links (SOL003 4.4.1.11): what the request does not name stays; a point is on one link only.

    If the request names a point, its configurations are merged: null removes a configuration, and the removal of the
    last one removes the point.
    """
    links: dict[str, Link] = {str(link["id"]): {**link, "extCps": list(link.get("extCps") or ())} for link in present}
    for link in wanted:
        body = link.model_dump(mode="json", by_alias=True, exclude_unset=True)
        here: list[dict[str, Any]] = []
        for cp in body.get("extCps", ()):
            configs: dict[str, Any] = {}
            # The point may be on any link now: take it and its configurations from there, so that it is not on two.
            for other in links.values():
                for old in [one for one in other["extCps"] if one["cpdId"] == cp["cpdId"]]:
                    configs.update(old.get("cpConfig") or {})
                    other["extCps"].remove(old)
            given = cp.get("cpConfig", {})
            for name, config in given.items():
                if config is None:
                    configs.pop(name, None)
                else:
                    configs[name] = config
            if configs or not given:
                here.append({"cpdId": cp["cpdId"], "cpConfig": configs})
        stays = links.get(link.id, {}).get("extCps", [])
        links[link.id] = {**body, "extCps": [*stays, *here]}
    # A link without connection points is no longer connected to the VNF.
    return [link for link in links.values() if link["extCps"]]
