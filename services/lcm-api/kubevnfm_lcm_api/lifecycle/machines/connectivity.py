"""Change of the external connectivity (SOL003 5.4.11): merges the present links with those of the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubevnfm_sol.connection_points import asked_points, canonical, merged_links
from kubevnfm_sol.connectivity import ExtVirtualLinkData, VnfExtCpData
from kubevnfm_sol.lcm import ChangeExtVnfConnectivityRequest, OperationType
from kubevnfm_sol.resources import InstantiatedVnfInfo

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
    present = before.get("extVirtualLinks") or ()
    wanted = with_known_entries(asked.request.ext_virtual_links, present, vnf.info)
    links = changed_links(present, wanted)
    files = await packages.file_names(vnf.package.package_id)
    connected = await vnf.connections(vim_entries, asked.request.vim_connection_info, asked.version)
    parameters = asked.request.additional_params
    hot = await packages.base_hot(vnf.package.package_id, vnf.flavour.flavour_id)
    change = vnf.change(asked, OperationType.CHANGE_EXT_CONN, parameters, files, connected)
    rules = vnf.link_rules(vnf.flavour, hot, has_user_data=change.user_data is not None)
    check_links(wanted, rules, after=links)
    await check_user_data(packages, change)
    return ConnectVmDraft(**{**vars(change), "connections": {**before, "extVirtualLinks": links}})


def with_known_entries(
    links: Sequence[ExtVirtualLinkData], present: Sequence[Mapping[str, Any]], info: InstantiatedVnfInfo
) -> list[ExtVirtualLinkData]:
    """Return the links with the ids of entries of cpConfig that the VNF has, where v1 names their instance (cpInstanceId)."""
    points = asked_points(present)

    def known(cp: VnfExtCpData, name: str) -> str:
        shown = {one.id: one.cp_config_id for one in info.ext_cp_info if one.cpd_id == cp.cpd_id}
        entries = [port.config_id for port in points[cp.cpd_id].ports] if cp.cpd_id in points else []
        if name not in shown:
            return name
        # An entry for all instances is not that of one of them.
        own = entries[0] if len(entries) == len(shown) == 1 else shown[name]
        is_own = len(shown) == 1 or list(shown.values()).count(own) == 1
        return own if is_own and own in entries and own not in cp.cp_config else name

    def named(cp: VnfExtCpData) -> VnfExtCpData:
        return cp.model_copy(update={"cp_config": {known(cp, name): one for name, one in cp.cp_config.items()}})

    return [link.model_copy(update={"ext_cps": tuple(map(named, link.ext_cps))}) for link in links]


def changed_links(present: Sequence[Mapping[str, Any]], wanted: Sequence[ExtVirtualLinkData]) -> list[dict[str, Any]]:
    """Return the links after a request for a change, in which what is not named stays."""
    bodies = [link.model_dump(mode="json", by_alias=True, exclude_unset=True) for link in wanted]
    return merged_links(present, bodies, keeps_configs=True)


def shown_links(links: Sequence[Mapping[str, Any]], info: InstantiatedVnfInfo) -> list[dict[str, Any]]:
    """Return the links that a VNF has, without link ports, MAC and fixed addresses that none of its connection points shows.

    Version 0.1.0 has stored these, and left them out. Entries for machines that are not there yet stay.
    """
    return [{**link, "extCps": [_shown_point(cp, info) for cp in link.get("extCps") or ()]} for link in links]


def _shown_point(cp: Mapping[str, Any], info: InstantiatedVnfInfo) -> dict[str, Any]:
    shown = [one for one in info.ext_cp_info if one.cpd_id == cp["cpdId"]]
    ethernets = [p.ip_over_ethernet for one in shown for p in one.cp_protocol_info if p.ip_over_ethernet is not None]
    macs = {one.mac_address.lower() for one in ethernets if one.mac_address is not None}
    addresses = {canonical(each) for one in ethernets for ips in one.ip_addresses or () for each in ips.addresses}
    configs = {name: config for name, config in (cp.get("cpConfig") or {}).items() if config is not None}
    if not macs or len(shown) < len(configs):
        return dict(cp)
    ports = {one.ext_link_port_id for one in shown}

    def with_shown(config: Mapping[str, Any]) -> dict[str, Any]:
        members = {name: value for name, value in config.items() if name != "linkPortId" or value in ports}
        data = [{**one, "ipOverEthernet": ethernet(one)} for one in config.get("cpProtocolData") or ()]
        return {**members, "cpProtocolData": data or [{"layerProtocol": "IP_OVER_ETHERNET"}]}

    def ethernet(data: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(data.get("ipOverEthernet") or {})
        if str(given.get("macAddress")).lower() not in macs:
            given.pop("macAddress", None)
        given["ipAddresses"] = [
            one
            if {canonical(each) for each in one.get("fixedAddresses") or ()} <= addresses
            else {name: value for name, value in one.items() if name != "fixedAddresses"}
            for one in given.get("ipAddresses") or ()
        ]
        return given

    return {**cp, "cpConfig": {name: with_shown(config) for name, config in configs.items()}}
