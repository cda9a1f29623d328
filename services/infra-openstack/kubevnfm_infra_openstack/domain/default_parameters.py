"""The built-in user data: Heat's parameters from request, grant and VNFD, for packages that have no class of their own.

It fills exactly the paths that the top template reads (``get_param: [nfv, VDU, masterNode, flavor]``), under the names
of both API versions: ``flavor`` and ``computeFlavourId``, ``image`` and ``vcImageId`` and so on (sequences.md 6.3).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from kubevnfm_csar.hot import parameter_paths
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_kit.merge_patch import merge_patch

from kubevnfm_infra_openstack.domain.grant import (
    Granted,
    aspect_capacity,
    capacity_of,
    fixed_ips,
    flavor_of,
    image_of,
    mac_of,
    managed_links,
    network_of,
    port_of,
    zone_of,
)
from kubevnfm_infra_openstack.domain.hot import (
    SUBNET,
    Parameters,
    Template,
    declared,
    properties_of,
    resources_of,
)

_SIZE: Final = "_desired_capacity"


def heat_parameters(template: Template, vnfd: Flavour, given: Granted) -> Parameters:
    """Return the parameters of the stack; only those that the top template declares.

    ``additionalParams`` of the request apply first, then those of the grant: ``nfv`` is merged (RFC 7396), and a value
    with the name of a template parameter becomes that parameter.
    """
    names = declared(template)
    parameters: dict[str, object] = _capacities(template, vnfd, given)
    nfv: object = nfv_tree(template, vnfd, given) if "nfv" in names else None
    for additional in (given.request_params, given.grant_params):
        parameters.update({name: additional[name] for name in names if name in additional and name != "nfv"})
        if nfv is not None and isinstance(additional.get("nfv"), Mapping):
            nfv = merge_patch(nfv, additional["nfv"])
    if nfv is not None:
        parameters["nfv"] = nfv
    return parameters


def with_requested(parameters: Parameters, template: Template, vnfd: Flavour, given: Granted) -> Parameters:
    """Return the parameters of a user data class with those added that the stack needs and the class leaves out.

    ``additionalParams`` of request and grant have them under their own name. Heat refuses a stack without a value for a
    parameter that has no default, so nothing that a class decides is changed. Zones and sizes of groups are added as
    Tacker does it for classes of v1.
    """
    additional = {**given.request_params, **given.grant_params}
    needed = (
        name for name, about in declared(template).items() if not (isinstance(about, Mapping) and "default" in about)
    )
    requested = {name: additional[name] for name in needed if name in additional}
    return _with_zones({**_capacities(template, vnfd, given), **requested, **parameters}, template, vnfd, given)


def _capacities(template: Template, vnfd: Flavour, given: Granted) -> dict[str, object]:
    """Return the parameters ``<aspect>_desired_capacity`` that the template declares."""
    found = {
        name: aspect_capacity(name.removesuffix(_SIZE), vnfd, given)
        for name in declared(template)
        if name.endswith(_SIZE)
    }
    return {name: size for name, size in found.items() if size is not None}


def _with_zones(parameters: Parameters, template: Template, vnfd: Flavour, given: Granted) -> Parameters:
    """Return the parameters with a zone at each path for one that the template reads and whose VDU has none there."""
    nfv = parameters.get("nfv")
    vdus = nfv.get("VDU") if isinstance(nfv, Mapping) else None
    if not isinstance(nfv, Mapping) or not isinstance(vdus, Mapping):
        return parameters
    wanted = nfv_tree(template, vnfd, given, only=zone_names()).get("VDU", {})
    added = {
        name: {**{key: zone for key, zone in zones.items() if zone is not None}, **vdus[name]}
        for name, zones in wanted.items()
        if isinstance(vdus.get(name), Mapping)
    }
    return {**parameters, "nfv": {**nfv, "VDU": {**vdus, **added}}} if added else parameters


def with_present(parameters: Parameters, template: Template, present: Parameters) -> Parameters:
    """Return the parameters with those of the stack that no rule gives: a class of user data may have made them.

    ``template``: the new one, which declares them; ``present``: the values of the stack by name.
    """
    known = {name: value for name, value in present.items() if name in declared(template)}
    return {**known, **{name: _over(known.get(name), value) for name, value in parameters.items()}}


def _over(present: object, new: object) -> object:
    if isinstance(present, Mapping) and isinstance(new, Mapping):
        return {**present, **{name: _over(present.get(name), value) for name, value in new.items()}}
    return present if new is None else new


def nfv_tree(template: Template, vnfd: Flavour, given: Granted, only: Collection[str] | None = None) -> dict[str, Any]:
    """Return the ``nfv`` object with a value at every path that the template's resources read.

    A value that neither request, grant nor VNFD has is None: Heat then names the property that lacks it. ``only``: the
    names of the wanted values; None: all.
    """
    nfv: dict[str, Any] = {}
    for resource in resources_of(template).values():
        for path in parameter_paths(resource.get("properties")):
            if len(path) >= 3 and path[0] == "nfv" and (only is None or str(path[-1]) in only):
                _fill(nfv, path, vnfd, given)
    return nfv


def reads_zones(template: Template) -> bool:
    """Return whether the template reads the zone of a VDU from ``nfv``."""
    return any(
        len(path) > 3 and path[0] == "nfv" and _VALUES.get(str(path[1]), {}).get(str(path[3])) is zone_of
        for resource in resources_of(template).values()
        for path in parameter_paths(resource.get("properties"))
    )


def zone_names() -> frozenset[str]:
    """Return the names under which templates read the zone of a VDU."""
    return frozenset(name for name, value_of in _VALUES["VDU"].items() if value_of is zone_of)


def _fill(nfv: dict[str, Any], path: Sequence[object], vnfd: Flavour, given: Granted) -> None:
    kind, name = str(path[1]), str(path[2])
    if kind == "desired_capacity":
        nfv.setdefault(kind, {})[name] = aspect_capacity(name, vnfd, given)
    elif len(path) > 3 and kind in _VALUES:
        attribute = str(path[3])
        values = nfv.setdefault(kind, {}).setdefault(name, {})
        # Once: an address of a range is chosen by chance.
        if attribute not in values:
            value_of = _VALUES[kind].get(attribute)
            values[attribute] = value_of(name, vnfd, given) if value_of else None
        if attribute == "fixed_ips" and len(path) > 5:
            # Heat makes an empty text of a member that is missing, and nothing of null.
            values[attribute] = [
                {**({str(path[5]): None} if str(number) == str(path[4]) else {}), **address}
                for number, address in enumerate(values[attribute])
            ]


def _name_of(entry: str, vnfd: Flavour, given: Granted) -> str:
    """Return the name of a machine, as in the parameters of Tacker's guides."""
    return entry


_ValueOf = Callable[[str, Flavour, Granted], object]
_VALUES: Final[Mapping[str, Mapping[str, _ValueOf]]] = {
    "VDU": {
        "flavor": flavor_of,
        "computeFlavourId": flavor_of,
        "image": image_of,
        "vcImageId": image_of,
        "zone": zone_of,
        "locationConstraints": zone_of,
        "desired_capacity": capacity_of,
        "name": _name_of,
        "computeName": _name_of,
    },
    "CP": {
        "network": network_of,
        "fixed_ips": fixed_ips,
        "mac_address": mac_of,
        "port": port_of,
    },
}


def with_managed_links(template: Template, given: Granted) -> Template | None:
    """Return the template with externally managed networks in place of its own; None if the request names none.

    A managed link's network and its subnets are removed from the template; references to it name the given network.
    """
    networks = {name: network for name, network in managed_links(given).items() if name in resources_of(template)}
    if not networks:
        return None
    changed = copy.deepcopy(dict(template))
    gone = set(networks)
    for name, resource in resources_of(template).items():
        network = properties_of(resource).get("network")
        if resource.get("type") == SUBNET and isinstance(network, Mapping) and network.get("get_resource") in networks:
            gone.add(name)
    changed["resources"] = {
        name: _put_networks(resource, networks, gone)
        for name, resource in resources_of(changed).items()
        if name not in gone
    }
    return changed


def _put_networks(node: object, networks: Mapping[str, str], gone: set[str]) -> object:
    if isinstance(node, Mapping):
        if set(node) == {"get_resource"} and node["get_resource"] in networks:
            return networks[node["get_resource"]]
        # Heat rejects a depends_on that names a resource which is no longer in the template.
        return {
            key: [d for d in value if d not in gone]
            if key == "depends_on" and isinstance(value, list)
            else _put_networks(value, networks, gone)
            for key, value in node.items()
            if not (key == "depends_on" and isinstance(value, str) and value in gone)
        }
    if isinstance(node, list):
        return [_put_networks(value, networks, gone) for value in node]
    return node
