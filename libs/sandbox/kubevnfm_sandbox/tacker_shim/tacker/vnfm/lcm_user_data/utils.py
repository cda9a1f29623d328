"""The twelve functions with which v1 user data classes compose their result.

Each works on plain dicts: the Base HOT (nested templates by file name, the top one under ``heat_template``) and the
flavour's VNFD. Their behaviour is that of the functions of these names in Tacker's user guide; the code is ours.
"""

import copy
import re

_SERVER, _FLAVOR = "OS::Nova::Server", "OS::Nova::Flavor"
_PORT, _VOLUME = "OS::Neutron::Port", "OS::Cinder::Volume"
_GROUP = "OS::Heat::AutoScalingGroup"
_BYTES = {"": 1, "B": 1}
for _power, _letter in enumerate("kMGT", start=1):
    _BYTES[_letter + "B"] = 1000**_power
    _BYTES[_letter.upper() + "iB"] = 1024**_power
_BYTES["KB"] = 1000


# --- parameters of the templates --------------------------------------------------------------------------------------


def create_initial_param_dict(base_hot_dict):
    """``{"nfv": {"VDU": {name: {}}, "CP": {name: {}}}}`` for what servers, flavors, ports and volumes read."""
    return _wanted(base_hot_dict, (_SERVER, _FLAVOR, _PORT, _VOLUME))


def create_initial_param_server_port_dict(base_hot_dict):
    """The same without flavors: for templates that take flavors by name."""
    return _wanted(base_hot_dict, (_SERVER, _PORT, _VOLUME))


def _wanted(base_hot_dict, types):
    found = {"VDU": {}, "CP": {}}
    for template in base_hot_dict.values():
        if not (template.get("parameters") or {}).get("nfv"):
            continue
        for resource in (template.get("resources") or {}).values():
            for path in _paths(resource, types):
                if len(path) == 4 and path[0] == "nfv" and path[1] in found:
                    found[path[1]].setdefault(path[2], {})
    return {"nfv": found}


def _paths(resource, types):
    """The get_param paths directly below a resource's properties, a group's members' or a boot volume's."""
    kind, properties = resource.get("type"), resource.get("properties") or {}
    if kind == _GROUP:
        values = list(((properties.get("resource") or {}).get("properties") or {}).values())
    elif kind in types:
        values = list(properties.values())
        if kind == _SERVER:
            values += [mapping.get("image") for mapping in properties.get("block_device_mapping_v2") or ()]
    else:
        values = []
    paths = [value["get_param"] for value in values if isinstance(value, dict) and "get_param" in value]
    return [path for path in paths if isinstance(path, list)]


# --- what request, VNFD and grant give --------------------------------------------------------------------------------


def _nodes(vnfd_dict):
    return ((vnfd_dict or {}).get("topology_template") or {}).get("node_templates") or {}


def _compute(node):
    return ((node.get("capabilities") or {}).get("virtual_compute") or {}).get("properties") or {}


def create_vdu_flavor_dict(vnfd_dict):
    """``{vdu: {"vcpus", "ram" (MiB), "disk" (GiB)}}`` from the VDUs' virtual_compute."""
    flavors = {}
    for name, node in _nodes(vnfd_dict).items():
        compute = _compute(node)
        if not compute:
            continue
        size = flavors.setdefault(name, {})
        if "virtual_cpu" in compute:
            size["vcpus"] = compute["virtual_cpu"]["num_virtual_cpu"]
        if "virtual_memory" in compute:
            size["ram"] = _in_unit(compute["virtual_memory"]["virtual_mem_size"], "MiB")
        if compute.get("virtual_local_storage"):
            size["disk"] = _in_unit(compute["virtual_local_storage"][0]["size_of_storage"], "GiB")
    return flavors


def _in_unit(size, unit):
    """A TOSCA scalar-unit.size in whole units."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", str(size))
    if match is None or match.group(2) not in _BYTES:
        raise ValueError("size %r: a number with a unit such as GB or GiB expected" % (size,))
    return int(float(match.group(1)) * _BYTES[match.group(2)] / _BYTES[unit])


def create_vdu_flavor_capability_name_dict(vnfd_dict):
    """``{vdu: flavor}`` where the VDU asks for a flavor by requested_additional_capability_name."""
    flavors = {}
    for name, node in _nodes(vnfd_dict).items():
        asked = (_compute(node).get("requested_additional_capabilities") or {}).get("properties") or {}
        if "requested_additional_capability_name" in asked:
            flavors[name] = asked["requested_additional_capability_name"]
    return flavors


def create_vdu_image_dict(grant_info):
    """``{vdu: Glance id}`` of the images that were made or granted."""
    return {vdu: one.resource_identifier for vdu, resources in (grant_info or {}).items() for one in resources}


def create_sw_image_dict(vnfd_dict):
    """``{node: image}`` from sw_image_data's name."""
    images = {}
    for name, node in _nodes(vnfd_dict).items():
        data = (node.get("properties") or {}).get("sw_image_data") or {}
        if "name" in data:
            images[name] = data["name"]
    return images


def create_cpd_vl_dict(base_hot_dict, inst_req_info):
    """``{cpd: network}`` for the external connection points that are resources of a template."""
    known = {name for template in base_hot_dict.values() for name in template.get("resources") or ()}
    return {
        cp.cpd_id: link.resource_id
        for link in inst_req_info.ext_virtual_links or ()
        for cp in link.ext_cps
        if cp.cpd_id in known
    }


def create_network_dict(inst_req_info, param_dict):
    """``{cpd: {"network", "fixed_ips"}}`` for the connection points of ``param_dict``."""
    wanted = param_dict.get("nfv", {}).get("CP") or {}
    return {
        cp.cpd_id: {"network": link.resource_id, "fixed_ips": _fixed_ips(cp)}
        for link in inst_req_info.ext_virtual_links or ()
        for cp in link.ext_cps
        if cp.cpd_id in wanted
    }


def _fixed_ips(cp):
    """``{"subnet", "ip_address"}`` per address entry, the last fixed address of each."""
    entries = []
    for config in cp.cp_config:
        for protocol in config.cp_protocol_data:
            for address in protocol.ip_over_ethernet.ip_addresses if protocol.ip_over_ethernet else ():
                entry = {"subnet": address.subnet_id} if address.subnet_id else {}
                if address.fixed_addresses:
                    entry["ip_address"] = address.fixed_addresses[-1]
                if entry:
                    entries.append(entry)
    return entries


def get_diff_base_hot_param_from_api(base_hot_dict, inst_req_info):
    """The additionalParams that are named like a parameter of the top template."""
    given = inst_req_info.additional_params or {}
    declared = base_hot_dict["heat_template"].get("parameters") or {}
    return {name: given[name] for name in declared if given.get(name)}


# --- put together -----------------------------------------------------------------------------------------------------


def create_final_param_dict(param_dict, vdu_flavor_dict, vdu_image_dict, cpd_vl_dict):
    """``param_dict`` with each VDU's flavor and image and each CP's network (and fixed_ips) filled in."""
    final = copy.deepcopy(param_dict)
    nfv = final.get("nfv", {})
    for name, vdu in nfv.get("VDU", {}).items():
        vdu["flavor"] = vdu_flavor_dict.get(name)
        vdu["image"] = vdu_image_dict.get(name)
    for name, cp in nfv.get("CP", {}).items():
        link = (cpd_vl_dict or {}).get(name)
        if isinstance(link, dict):
            cp.update({key: copy.copy(link[key]) for key in ("network", "fixed_ips") if key in link})
        elif link is not None:
            cp["network"] = link
    return final


# --- scaling groups ---------------------------------------------------------------------------------------------------


def create_desired_capacity_dict(base_hot_dict, vnfd_dict, inst_req_info):
    """``{aspect: instances}`` at the requested (or default) instantiation level, for aspects with a scaling group."""
    level = getattr(inst_req_info, "instantiation_level_id", None)
    levels = _scale_levels(vnfd_dict, level)
    return {
        aspect: first + step * levels.get(aspect, 0)
        for aspect, (first, step) in _scaled(base_hot_dict, vnfd_dict).items()
    }


def get_desired_capacity_dict(base_hot_dict, vnfd_dict, inst_vnf_info):
    """``{aspect: instances}`` at the instance's present scale level."""
    levels = {status.aspect_id: status.scale_level for status in inst_vnf_info.scale_status or ()}
    return {
        aspect: first + step * levels[aspect]
        for aspect, (first, step) in _scaled(base_hot_dict, vnfd_dict).items()
        if aspect in levels
    }


def _policies(vnfd_dict, kind):
    listed = ((vnfd_dict or {}).get("topology_template") or {}).get("policies") or []
    for entry in [listed] if isinstance(listed, dict) else listed:
        for policy in entry.values():
            if policy.get("type") == "tosca.policies.nfv." + kind:
                yield policy.get("properties") or {}, policy.get("targets") or []


def _scaled(base_hot_dict, vnfd_dict):
    """(instances at level 0, instances per step) by aspect, for those whose name, with or without _group, a group has."""
    resources = base_hot_dict["heat_template"].get("resources") or {}
    groups = {n.replace("_group", "") for n, resource in resources.items() if resource.get("type") == _GROUP}
    first = {
        vdu: (properties.get("initial_delta") or {}).get("number_of_instances", 0)
        for properties, targets in _policies(vnfd_dict, "VduInitialDelta")
        for vdu in targets
    }
    scaled = {}
    for properties, targets in _policies(vnfd_dict, "VduScalingAspectDeltas"):
        aspect = properties.get("aspect")
        if aspect in groups and targets:
            step = next(iter((properties.get("deltas") or {}).values()), {}).get("number_of_instances", 0)
            scaled[aspect] = (first.get(targets[0], 0), step)
    return scaled


def _scale_levels(vnfd_dict, level):
    for properties, _ in _policies(vnfd_dict, "InstantiationLevels"):
        levels = properties.get("levels") or {}
        chosen = levels.get(level or properties.get("default_level")) or {}
        return {aspect: info.get("scale_level", 0) for aspect, info in (chosen.get("scale_info") or {}).items()}
    return {}
