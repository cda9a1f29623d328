"""The functions with which v2 user data classes compose their result; all data are plain dicts in SOL003 v3 form.

Their behaviour is that of the functions of these names in Tacker's documentation; the code is ours.
"""

from tacker.sol_refactored.common import vnfd_utils


def get_vnfd(vnfd_id, csar_dir):
    """The Vnfd of the package in ``csar_dir``."""
    vnfd = vnfd_utils.Vnfd(vnfd_id)
    vnfd.init_from_csar_dir(csar_dir)
    return vnfd


def init_nfv_dict(hot_template):
    """A tree with None at every path ``[nfv, ...]`` of four or more elements that the template's resources read."""
    nfv = {}
    for resource in (hot_template.get("resources") or {}).values():
        for path in _get_params(resource.get("properties") or {}):
            if isinstance(path, list) and len(path) >= 4 and path[0] == "nfv":
                place = nfv
                for step in path[1:-1]:
                    if not isinstance(place.get(step), dict):
                        place[step] = {}
                    place = place[step]
                place.setdefault(path[-1], None)
    return nfv


def _get_params(node):
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "get_param":
                yield value
            else:
                yield from _get_params(value)
    elif isinstance(node, list):
        for value in node:
            yield from _get_params(value)


# --- VDUs -------------------------------------------------------------------------------------------------------------


def _asset(grant, kind, key, name, answer):
    for asset in (grant.get("vimAssets") or {}).get(kind) or ():
        if asset[key] == name:
            return asset[answer]
    return None


def get_param_flavor(vdu_name, flavour_id, vnfd, grant):
    """The granted flavor, else the one that the VNFD names."""
    granted = _asset(grant, "computeResourceFlavours", "vnfdVirtualComputeDescId", vdu_name, "vimFlavourId")
    return granted or vnfd.get_compute_flavor(flavour_id, vdu_name)


def get_param_image(vdu_name, flavour_id, vnfd, grant, fallback_vnfd=True):
    """The granted image, else (if ``fallback_vnfd``) the name in the VNFD."""
    granted = _asset(grant, "softwareImages", "vnfdSoftwareImageId", vdu_name, "vimSoftwareImageId")
    if granted or not fallback_vnfd:
        return granted
    return vnfd.get_sw_image(flavour_id).get(vdu_name)


def _zone(grant, zone_id):
    return next((zone["zoneId"] for zone in grant["zones"] if zone["id"] == zone_id), None)


def get_param_zone(vdu_name, grant_req, grant):
    """The zone granted to a VDU."""
    if "zones" not in grant or "addResources" not in grant:
        return None
    template_by_id = {r["id"]: r.get("resourceTemplateId") for r in grant_req.get("addResources") or ()}
    for resource in grant["addResources"]:
        if "zoneId" in resource and template_by_id.get(resource["resourceDefinitionId"]) == vdu_name:
            return _zone(grant, resource["zoneId"])
    return None


def get_param_zone_by_vnfc(res_id, grant):
    """The zone granted to one resource definition."""
    if "zones" not in grant or "addResources" not in grant:
        return None
    for resource in grant["addResources"]:
        if resource["resourceDefinitionId"] == res_id:
            return _zone(grant, resource["zoneId"]) if "zoneId" in resource else None
    return None


def get_current_capacity(vdu_name, inst):
    """How many VNFCs of the VDU the instance has."""
    vnfcs = (inst.get("instantiatedVnfInfo") or {}).get("vnfcResourceInfo") or ()
    return sum(1 for vnfc in vnfcs if vnfc["vduId"] == vdu_name)


def get_param_capacity(vdu_name, inst, grant_req):
    """How many it will have: as now, plus what the grant request adds, less what it removes."""

    def computes(kind):
        return sum(
            1
            for resource in grant_req.get(kind) or ()
            if resource["type"] == "COMPUTE" and resource.get("resourceTemplateId") == vdu_name
        )

    return get_current_capacity(vdu_name, inst) + computes("addResources") - computes("removeResources")


# --- connection points ------------------------------------------------------------------------------------------------


def _ext_cp(cp_name, links, cps):
    for link in links:
        for ext_cp in link.get(cps) or ():
            if ext_cp["cpdId"] == cp_name:
                return link, ext_cp
    return None, None


def _given(cp_name, grant, req):
    links = (grant.get("extVirtualLinks") or []) + (req.get("extVirtualLinks") or [])
    return _ext_cp(cp_name, links, "extCps")


def _stored(cp_name, inst):
    links = inst["instantiatedVnfInfo"].get("extVirtualLinkInfo") or ()
    return _ext_cp(cp_name, links, "currentVnfExtCpData")


def _fixed_ips(configs, index, known):
    entries = []
    for name in configs if index is None else _own(list(configs), index, known):
        for protocol in configs[name].get("cpProtocolData") or ():
            for address in (protocol.get("ipOverEthernet") or {}).get("ipAddresses") or ():
                subnet = {"subnet": address["subnetId"]} if "subnetId" in address else {}
                fixed = [{"ip_address": str(one), **subnet} for one in address.get("fixedAddresses") or ()]
                entries.extend(fixed or ([subnet] * int(address.get("numDynamicAddresses") or 1) if subnet else []))
    return entries


def _own(names, index, known):
    """The entry of the machine with a number: an entry is one connection point instance, and stays that of its machine."""
    if len(names) == 1 and len(set(known.values())) < 2:
        return names
    owners = {number: name for number, name in known.items() if name in names}
    if index in owners:
        return [owners[index]]
    free = [name for name in names if name not in owners.values()]
    place = index - sum(1 for number in owners if number < index)
    return free[place : place + 1]


def _known(cp_name, inst):
    """The entry of cpConfig that a machine has at a connection point, by the machine's number."""
    info = (inst or {}).get("instantiatedVnfInfo") or {}
    number_by_cp = {
        cp["id"]: (vnfc.get("metadata") or {}).get("vdu_idx")
        for vnfc in info.get("vnfcResourceInfo") or ()
        for cp in vnfc.get("vnfcCpInfo") or ()
        if cp.get("cpdId") == cp_name
    }
    entries = [(number_by_cp.get(cp.get("associatedVnfcCpId")), cp) for cp in info.get("extCpInfo") or ()]
    return {number: cp["cpConfigId"] for number, cp in entries if number is not None and cp.get("cpConfigId")}


def _configs(ext_cp, present=None):
    """The entries of ``present`` and ``ext_cp``; null in the latter removes one."""
    configs = {**((present or {}).get("cpConfig") or {}), **(ext_cp.get("cpConfig") or {})}
    return {name: config for name, config in configs.items() if config is not None}


def get_param_network(cp_name, grant, req):
    """The network of an external connection point; the grant goes before the request."""
    link, _ = _given(cp_name, grant, req)
    return link["resourceId"] if link else None


def get_param_fixed_ips(cp_name, grant, req, index=None, inst=None):
    """``{"ip_address", "subnet"}`` per address of an external connection point; ``index``: of this machine only.

    ``inst``: the entries that a request does not name stay as they are there, unless the network is another one.
    """
    link, ext_cp = _given(cp_name, grant, req)
    if ext_cp is None:
        return None
    old_link, old = _stored(cp_name, inst) if inst and "instantiatedVnfInfo" in inst else (None, None)
    is_kept = old_link is not None and old_link["resourceHandle"]["resourceId"] == link["resourceId"]
    return _fixed_ips(_configs(ext_cp, old if is_kept else None), index, _known(cp_name, inst))


def get_param_network_from_inst(cp_name, inst):
    """As get_param_network, from the instance's present connections."""
    link, _ = _stored(cp_name, inst)
    return link["resourceHandle"]["resourceId"] if link else None


def get_param_fixed_ips_from_inst(cp_name, inst, index=None):
    """As get_param_fixed_ips, from the instance's present connections."""
    _, ext_cp = _stored(cp_name, inst)
    return _fixed_ips(_configs(ext_cp), index, _known(cp_name, inst)) if ext_cp else None


# --- externally managed virtual links ---------------------------------------------------------------------------------


def apply_ext_managed_vls(hot_dict, req, grant):
    """Put managed networks in the place of the template's own; changes ``hot_dict``."""
    links = (grant.get("extManagedVirtualLinks") or []) + (req.get("extManagedVirtualLinks") or [])
    _apply(hot_dict, [(link["vnfVirtualLinkDescId"], link["resourceId"]) for link in links])


def apply_ext_managed_vls_from_inst(hot_dict, inst):
    """As apply_ext_managed_vls, from the instance's present links."""
    links = inst["instantiatedVnfInfo"].get("extManagedVirtualLinkInfo") or ()
    _apply(hot_dict, [(link["vnfVirtualLinkDescId"], link["networkResource"]["resourceId"]) for link in links])


def _apply(hot_dict, network_by_link):
    resources = hot_dict.get("resources") or {}
    for link, network in network_by_link:
        reference = {"get_resource": link}
        for name in list(resources):
            properties = resources[name].get("properties") or {}
            is_subnet = resources[name].get("type") == "OS::Neutron::Subnet" and properties.get("network") == reference
            if name == link or is_subnet:
                del resources[name]
        for resource in resources.values():
            _replace(resource, reference, network)


def _replace(node, reference, network):
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(members):
        if value == reference:
            node[key] = network
        else:
            _replace(value, reference, network)
