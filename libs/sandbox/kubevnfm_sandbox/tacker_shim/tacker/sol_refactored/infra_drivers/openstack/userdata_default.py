"""DefaultUserData: templates as they are, one ``nfv`` entry per VDU and connection point; groups scale by capacity."""

from functools import partial

import yaml

from tacker.sol_refactored.common import common_script_utils as script
from tacker.sol_refactored.common.vnf_instance_utils import json_merge_patch
from tacker.sol_refactored.infra_drivers.openstack import userdata_utils


def fill_vdus(vdus, flavour_id, vnfd, grant_req, grant, plain=lambda name: name):
    """Fill flavor, image, zone and name; ``plain`` takes a VDU's name out of its entry's."""
    for name, vdu in vdus.items():
        if "computeFlavourId" in vdu:
            vdu["computeFlavourId"] = script.get_param_flavor(plain(name), flavour_id, vnfd, grant)
        if "vcImageId" in vdu:
            vdu["vcImageId"] = script.get_param_image(plain(name), flavour_id, vnfd, grant)
        if "locationConstraints" in vdu:
            vdu["locationConstraints"] = script.get_param_zone(plain(name), grant_req, grant)
        for key in ("name", "computeName"):
            if key in vdu:
                vdu[key] = name


def wanted_ips(wanted, given):
    """``given`` as far, and with those members, as the template reads them by index (``fixed_ips, 0, ip_address``)."""
    if not isinstance(wanted, dict):
        return given
    filled = []
    for index, address in enumerate(given):
        if index not in wanted:
            break
        filled.append({name: address.get(name) for name in wanted[index]})
    return filled


def fill_cps(cps, network, fixed_ips, plain=lambda name: name, number=lambda name: None):
    """Fill network and fixed_ips from the two functions of a connection point's name; return what was filled.

    A connection point that they do not know is left out. ``number``: takes the machine's number out of an entry's name.
    """
    filled = {}
    for name, cp in cps.items():
        given = network(plain(name)) if "network" in cp else None
        if given is not None:
            filled.setdefault(name, {})["network"] = given
        addresses = fixed_ips(plain(name), index=number(name)) if "fixed_ips" in cp else None
        if addresses is not None:
            filled.setdefault(name, {})["fixed_ips"] = wanted_ips(cp["fixed_ips"], addresses)
    return filled


def fill_new_cps(cps, *functions):
    """As fill_cps, in ``cps`` themselves; the VIM chooses the addresses of a connection point that is not known."""
    filled = fill_cps(cps, *functions)
    for name, cp in cps.items():
        if "fixed_ips" in cp:
            cp["fixed_ips"] = []
        cp.update(filled.get(name) or {})


def requested(grant, req, inst=None):
    """The two functions for `fill_cps`: what the grant gives, else the request; ``inst``: of a VNF that is changed."""
    network, fixed_ips = script.get_param_network, script.get_param_fixed_ips
    return partial(network, grant=grant, req=req), partial(fixed_ips, grant=grant, req=req, inst=inst)


def present(inst):
    """The same from the instance's present connections."""
    network, fixed_ips = script.get_param_network_from_inst, script.get_param_fixed_ips_from_inst
    return partial(network, inst=inst), partial(fixed_ips, inst=inst)


def with_additional_params(nfv, req, grant):
    """``nfv`` of the request's, then of the grant's additionalParams merged in."""
    for source in (req, grant):
        patch = (source.get("additionalParams") or {}).get("nfv")
        if patch is not None:
            nfv = json_merge_patch(nfv, patch)
    return nfv


def fields_of(top, nfv, hot):
    """The answer of ``instantiate``."""
    files = {name: yaml.safe_dump(body) for name, body in (hot.get("files") or {}).items()}
    return {"template": yaml.safe_dump(top), "parameters": {"nfv": nfv}, "files": files}


def base_hot_of(inst, flavour_id, tmp_csar_dir):
    """The package's Vnfd and Base HOT."""
    vnfd = script.get_vnfd(inst["vnfdId"], tmp_csar_dir)
    return vnfd, vnfd.get_base_hot(flavour_id)


def instance_flavour(inst):
    return inst["instantiatedVnfInfo"]["flavourId"]


class DefaultUserData(userdata_utils.AbstractUserData):
    """For templates whose VDUs are single servers or scaling groups."""

    @staticmethod
    def instantiate(req, inst, grant_req, grant, tmp_csar_dir):
        vnfd, hot = base_hot_of(inst, req["flavourId"], tmp_csar_dir)
        top = hot["template"]
        nfv = script.init_nfv_dict(top)
        vdus, cps = nfv.get("VDU", {}), nfv.get("CP", {})
        fill_vdus(vdus, req["flavourId"], vnfd, grant_req, grant)
        for name, vdu in vdus.items():
            if "desired_capacity" in vdu:
                vdu["desired_capacity"] = script.get_param_capacity(name, inst, grant_req)
        fill_new_cps(cps, *requested(grant, req))
        script.apply_ext_managed_vls(top, req, grant)
        return fields_of(top, with_additional_params(nfv, req, grant), hot)

    @staticmethod
    def _capacities(inst, tmp_csar_dir, capacity):
        _, hot = base_hot_of(inst, instance_flavour(inst), tmp_csar_dir)
        vdus = script.init_nfv_dict(hot["template"]).get("VDU", {})
        changed = {name: {"desired_capacity": capacity(name)} for name, v in vdus.items() if "desired_capacity" in v}
        return {"parameters": {"nfv": {"VDU": changed}}}

    @staticmethod
    def scale(req, inst, grant_req, grant, tmp_csar_dir):
        return DefaultUserData._capacities(
            inst, tmp_csar_dir, lambda name: script.get_param_capacity(name, inst, grant_req)
        )

    @staticmethod
    def scale_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        return DefaultUserData._capacities(inst, tmp_csar_dir, lambda name: script.get_current_capacity(name, inst))

    @staticmethod
    def _connections(inst, tmp_csar_dir, network, fixed_ips):
        _, hot = base_hot_of(inst, instance_flavour(inst), tmp_csar_dir)
        cps = script.init_nfv_dict(hot["template"]).get("CP", {})
        return {"parameters": {"nfv": {"CP": fill_cps(cps, network, fixed_ips)}}}

    @staticmethod
    def change_ext_conn(req, inst, grant_req, grant, tmp_csar_dir):
        return DefaultUserData._connections(inst, tmp_csar_dir, *requested(grant, req, inst))

    @staticmethod
    def change_ext_conn_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        return DefaultUserData._connections(inst, tmp_csar_dir, *present(inst))

    @staticmethod
    def heal(req, inst, grant_req, grant, tmp_csar_dir):
        return {"parameters": {"nfv": {}}}

    @staticmethod
    def change_vnfpkg(req, inst, grant_req, grant, tmp_csar_dir):
        """New flavors and images for the VDUs of the grant request and their storages; new links of all."""
        flavour_id = instance_flavour(inst)
        vnfd = script.get_vnfd(grant_req["dstVnfdId"], tmp_csar_dir)
        nfv = script.init_nfv_dict(vnfd.get_base_hot(flavour_id)["template"])
        nodes = vnfd.get_vdu_nodes(flavour_id)
        changed = {r["resourceTemplateId"] for r in grant_req.get("removeResources") or () if r["type"] == "COMPUTE"}
        changed |= {storage for name in changed & set(nodes) for storage in vnfd.get_vdu_storages(nodes[name])}
        vdus = {
            name: {key: None for key in ("computeFlavourId", "vcImageId") if key in vdu}
            for name, vdu in nfv.get("VDU", {}).items()
            if name in changed
        }
        fill_vdus(vdus, flavour_id, vnfd, grant_req, grant)
        cps = fill_cps(nfv.get("CP", {}), *requested(grant, req, inst))
        return {"parameters": {"nfv": with_additional_params({"VDU": vdus, "CP": cps}, req, grant)}}

    @staticmethod
    def change_vnfpkg_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        return {"parameters": {"nfv": inst["instantiatedVnfInfo"]["metadata"]["nfv"]}}
