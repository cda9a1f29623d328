"""StandardUserData: one resource ``<vdu>-<index>`` per VNFC, so that each has parameters of its own."""

import copy

import yaml

from tacker.sol_refactored.common import common_script_utils as script
from tacker.sol_refactored.infra_drivers.openstack import userdata_utils
from tacker.sol_refactored.infra_drivers.openstack.userdata_default import (
    base_hot_of,
    fields_of,
    fill_cps,
    fill_vdus,
    instance_flavour,
    with_additional_params,
)


def add_idx(name, index):
    """``VDU1`` and 0: ``VDU1-0``."""
    return "%s-%s" % (name, index)


def rm_idx(name_idx):
    """``VDU1-0``: ``VDU1``."""
    return name_idx.rpartition("-")[0]


def add_idx_to_vdu_template(vdu_template, vdu_idx):
    """A copy of the VDU's resource that reads ``[nfv, VDU, VDU1-<idx>, ...]`` where it read ``[nfv, VDU, VDU1, ...]``."""
    clone = copy.deepcopy(vdu_template)
    for value in (clone.get("properties") or {}).values():
        path = value.get("get_param") if isinstance(value, dict) else None
        if isinstance(path, list) and len(path) >= 4:
            path[2] = add_idx(path[2], vdu_idx)
    return clone


def _computes(grant_req, kind):
    return [resource for resource in grant_req.get(kind) or () if resource["type"] == "COMPUTE"]


def _take_vdus(vnfd, flavour_id, top):
    """The VDUs' resources, taken out of the template."""
    resources = top.get("resources") or {}
    return {name: resources.pop(name) for name in vnfd.get_vdu_nodes(flavour_id) if name in resources}


def _clone(top, taken, counted):
    """Put ``<vdu>-<idx>`` into the template for each (vdu, idx)."""
    for name, index in counted:
        if name in taken:
            top["resources"][add_idx(name, index)] = add_idx_to_vdu_template(taken[name], index)


def _numbered(resources, start):
    """(vdu, idx) per resource, counting on from ``start(vdu)``."""
    following = {}
    numbered = []
    for resource in resources:
        name = resource["resourceTemplateId"]
        index = following.get(name, None)
        index = start(name) if index is None else index
        following[name] = index + 1
        numbered.append((name, index))
    return numbered


def _removal(vnfd, flavour_id, counted):
    """A merge patch that takes ``<vdu>-<idx>`` and all that is its own out of the stack."""
    nodes = vnfd.get_vdu_nodes(flavour_id)
    resources, vdus, cps = {}, {}, {}
    for name, index in counted:
        resources[add_idx(name, index)] = None
        for part in (name, *vnfd.get_vdu_storages(nodes[name])):
            vdus[add_idx(part, index)] = None
        for part in vnfd.get_vdu_cps(flavour_id, name):
            cps[add_idx(part, index)] = None
    return {
        "template": yaml.safe_dump({"resources": resources}),
        "parameters": {"nfv": {"VDU": vdus, "CP": cps}},
    }


class StandardUserData(userdata_utils.AbstractUserData):
    """For templates with one resource of a nested template's type per VDU."""

    @staticmethod
    def instantiate(req, inst, grant_req, grant, tmp_csar_dir):
        vnfd, hot = base_hot_of(inst, req["flavourId"], tmp_csar_dir)
        top = hot["template"]
        taken = _take_vdus(vnfd, req["flavourId"], top)
        _clone(top, taken, _numbered(_computes(grant_req, "addResources"), lambda name: 0))
        nfv = StandardUserData._filled(
            top,
            req["flavourId"],
            vnfd,
            grant_req,
            grant,
            lambda name: script.get_param_network(name, grant, req),
            lambda name: script.get_param_fixed_ips(name, grant, req),
        )
        script.apply_ext_managed_vls(top, req, grant)
        return fields_of(top, with_additional_params(nfv, req, grant), hot)

    @staticmethod
    def _filled(top, flavour_id, vnfd, grant_req, grant, network, fixed_ips):
        nfv = script.init_nfv_dict(top)
        fill_vdus(nfv.get("VDU", {}), flavour_id, vnfd, grant_req, grant, rm_idx)
        cps = nfv.get("CP", {})
        for name, cp in fill_cps(cps, network, fixed_ips, rm_idx).items():
            cps[name].update(cp)
        return nfv

    @staticmethod
    def scale(req, inst, grant_req, grant, tmp_csar_dir):
        flavour_id = instance_flavour(inst)
        vnfd, hot = base_hot_of(inst, flavour_id, tmp_csar_dir)
        if req["type"] == "SCALE_IN":
            return _removal(vnfd, flavour_id, StandardUserData._leaving(inst, grant_req))
        top = hot["template"]
        taken = _take_vdus(vnfd, flavour_id, top)
        added = _numbered(
            _computes(grant_req, "addResources"), lambda name: script.get_current_capacity(name, inst)
        )
        _clone(top, taken, added)
        nfv = StandardUserData._filled(
            top,
            flavour_id,
            vnfd,
            grant_req,
            grant,
            lambda name: script.get_param_network_from_inst(name, inst),
            lambda name: script.get_param_fixed_ips_from_inst(name, inst),
        )
        return {"template": yaml.safe_dump(top), "parameters": {"nfv": nfv}}

    @staticmethod
    def _leaving(inst, grant_req):
        index_by_id = {
            vnfc["computeResource"]["resourceId"]: vnfc["metadata"]["vdu_idx"]
            for vnfc in inst["instantiatedVnfInfo"]["vnfcResourceInfo"]
            if "vdu_idx" in (vnfc.get("metadata") or {})
        }
        return [
            (resource["resourceTemplateId"], index_by_id[resource["resource"]["resourceId"]])
            for resource in _computes(grant_req, "removeResources")
        ]

    @staticmethod
    def scale_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        flavour_id = instance_flavour(inst)
        vnfd, _ = base_hot_of(inst, flavour_id, tmp_csar_dir)
        added = _numbered(
            _computes(grant_req, "addResources"), lambda name: script.get_current_capacity(name, inst)
        )
        return _removal(vnfd, flavour_id, added)

    @staticmethod
    def _connections(inst, tmp_csar_dir, network, fixed_ips):
        flavour_id = instance_flavour(inst)
        vnfd, hot = base_hot_of(inst, flavour_id, tmp_csar_dir)
        top = hot["template"]
        taken = _take_vdus(vnfd, flavour_id, top)
        present = [
            (vnfc["vduId"], vnfc["metadata"]["vdu_idx"])
            for vnfc in inst["instantiatedVnfInfo"].get("vnfcResourceInfo") or ()
            if (vnfc.get("metadata") or {}).get("vdu_idx") is not None
        ]
        _clone(top, taken, present)
        cps = script.init_nfv_dict(top).get("CP", {})
        return {"parameters": {"nfv": {"CP": fill_cps(cps, network, fixed_ips, rm_idx)}}}

    @staticmethod
    def change_ext_conn(req, inst, grant_req, grant, tmp_csar_dir):
        return StandardUserData._connections(
            inst,
            tmp_csar_dir,
            lambda name: script.get_param_network(name, grant, req),
            lambda name: script.get_param_fixed_ips(name, grant, req),
        )

    @staticmethod
    def change_ext_conn_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        return StandardUserData._connections(
            inst,
            tmp_csar_dir,
            lambda name: script.get_param_network_from_inst(name, inst),
            lambda name: script.get_param_fixed_ips_from_inst(name, inst),
        )

    @staticmethod
    def heal(req, inst, grant_req, grant, tmp_csar_dir):
        return {"parameters": {"nfv": {}}}

    @staticmethod
    def _versions(inst, grant_req, grant, tmp_csar_dir):
        flavour_id = instance_flavour(inst)
        vnfd, _ = base_hot_of(inst, flavour_id, tmp_csar_dir)
        vdus = {}
        for vnfc in inst["instantiatedVnfInfo"].get("vnfcResourceInfo") or ():
            index = (vnfc.get("metadata") or {}).get("vdu_idx")
            if index is not None:
                vdus[add_idx(vnfc["vduId"], index)] = {"computeFlavourId": None, "vcImageId": None}
        fill_vdus(vdus, flavour_id, vnfd, grant_req, grant, rm_idx)
        return {"parameters": {"nfv": {"VDU": vdus}}}

    @staticmethod
    def change_vnfpkg(req, inst, grant_req, grant, tmp_csar_dir):
        return StandardUserData._versions(inst, grant_req, grant, tmp_csar_dir)

    @staticmethod
    def change_vnfpkg_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        return StandardUserData._versions(inst, grant_req, {}, tmp_csar_dir)
