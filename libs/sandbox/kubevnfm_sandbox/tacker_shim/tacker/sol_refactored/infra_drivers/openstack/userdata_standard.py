"""StandardUserData: one resource ``<vdu>-<index>`` per VNFC, so that each has parameters of its own."""

import copy

import yaml

from tacker.sol_refactored.common import common_script_utils as script
from tacker.sol_refactored.infra_drivers.openstack import userdata_utils
from tacker.sol_refactored.infra_drivers.openstack.userdata_default import (
    base_hot_of,
    fields_of,
    fill_cps,
    fill_new_cps,
    fill_vdus,
    instance_flavour,
    present,
    requested,
    with_additional_params,
)


def add_idx(name, index):
    """``VDU1`` and 0: ``VDU1-0``."""
    return "%s-%s" % (name, index)


def rm_idx(name_idx):
    """``VDU1-0``: ``VDU1``."""
    return name_idx.rpartition("-")[0]


def idx_of(name_idx):
    """``VDU1-0``: 0."""
    return int(name_idx.rpartition("-")[2])


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


def _clone(top, taken, numbered):
    """Put ``<vdu>-<idx>`` into the template for each (vdu, idx)."""
    for name, index in numbered:
        if name in taken:
            top["resources"][add_idx(name, index)] = add_idx_to_vdu_template(taken[name], index)


def _added(inst, grant_req):
    """The resource that the grant request adds by (vdu, idx), counting on from the VNFCs that the instance has."""
    following = {}
    added = {}
    for resource in _computes(grant_req, "addResources"):
        name = resource["resourceTemplateId"]
        index = following.get(name, script.get_current_capacity(name, inst))
        following[name] = index + 1
        added[name, index] = resource
    return added


def _present(inst):
    """VNFC by (vdu, idx)."""
    return {
        (vnfc["vduId"], vnfc["metadata"]["vdu_idx"]): vnfc
        for vnfc in inst["instantiatedVnfInfo"].get("vnfcResourceInfo") or ()
        if (vnfc.get("metadata") or {}).get("vdu_idx") is not None
    }


def _touched(inst, grant_req):
    """(vdu, idx) of the VNFCs that the grant request removes."""
    gone = {resource["resource"]["resourceId"] for resource in _computes(grant_req, "removeResources")}
    return [key for key, vnfc in _present(inst).items() if vnfc["computeResource"]["resourceId"] in gone]


def _left(inst):
    """A copy of the parameters that the last operation left."""
    return copy.deepcopy(inst["instantiatedVnfInfo"]["metadata"]["nfv"])


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
        # A change of flavour makes the whole stack too: its machines count from 0, whatever the instance has.
        added = _added({}, grant_req)
        _clone(top, taken, added)
        nfv = StandardUserData._filled(top, req["flavourId"], vnfd, added, grant, requested(grant, req))
        script.apply_ext_managed_vls(top, req, grant)
        return fields_of(top, with_additional_params(nfv, req, grant), hot)

    @staticmethod
    def _filled(top, flavour_id, vnfd, added, grant, connections):
        nfv = script.init_nfv_dict(top)
        vdus = nfv.get("VDU", {})
        fill_vdus(vdus, flavour_id, vnfd, {}, grant, rm_idx)
        for (name, index), resource in added.items():
            if "locationConstraints" in vdus.get(add_idx(name, index), {}):
                zone = script.get_param_zone_by_vnfc(resource["id"], grant)
                vdus[add_idx(name, index)]["locationConstraints"] = zone
        fill_new_cps(nfv.get("CP", {}), *connections, rm_idx, idx_of)
        return nfv

    @staticmethod
    def scale(req, inst, grant_req, grant, tmp_csar_dir):
        flavour_id = instance_flavour(inst)
        vnfd, hot = base_hot_of(inst, flavour_id, tmp_csar_dir)
        removal = _removal(vnfd, flavour_id, _touched(inst, grant_req))
        if not _computes(grant_req, "addResources"):
            return removal
        top = hot["template"]
        taken = _take_vdus(vnfd, flavour_id, top)
        added = _added(inst, grant_req)
        _clone(top, taken, added)
        nfv = StandardUserData._filled(top, flavour_id, vnfd, added, grant, present(inst))
        script.apply_ext_managed_vls_from_inst(top, inst)
        # The answer is a merge patch: a null would remove a parameter that the present machines read.
        nfv = {
            part: {name: {key: v for key, v in entry.items() if v is not None} for name, entry in entries.items()}
            for part, entries in nfv.items()
        }
        # A scaling to levels may remove machines of one VDU and add some of another.
        top["resources"].update(yaml.safe_load(removal["template"])["resources"])
        for part, entries in removal["parameters"]["nfv"].items():
            nfv.setdefault(part, {}).update(entries)
        return {"template": yaml.safe_dump(top), "parameters": {"nfv": with_additional_params(nfv, req, grant)}}

    @staticmethod
    def scale_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        flavour_id = instance_flavour(inst)
        vnfd, _ = base_hot_of(inst, flavour_id, tmp_csar_dir)
        return _removal(vnfd, flavour_id, _added(inst, grant_req))

    @staticmethod
    def change_ext_conn(req, inst, grant_req, grant, tmp_csar_dir):
        flavour_id = instance_flavour(inst)
        vnfd, hot = base_hot_of(inst, flavour_id, tmp_csar_dir)
        top = hot["template"]
        _clone(top, _take_vdus(vnfd, flavour_id, top), _present(inst))
        cps = script.init_nfv_dict(top).get("CP", {})
        nfv = {"CP": fill_cps(cps, *requested(grant, req, inst), rm_idx, idx_of)}
        return {"parameters": {"nfv": with_additional_params(nfv, req, grant)}}

    @staticmethod
    def change_ext_conn_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        return {"parameters": {"nfv": _left(inst)}}

    @staticmethod
    def heal(req, inst, grant_req, grant, tmp_csar_dir):
        flavour_id = instance_flavour(inst)
        vnfd, _ = base_hot_of(inst, flavour_id, tmp_csar_dir)
        vdus = _left(inst).get("VDU", {})
        for name, index in _touched(inst, grant_req):
            # Only an image that the NFVO has granted for this heal; otherwise the machine keeps its own.
            image = script.get_param_image(name, flavour_id, vnfd, grant, fallback_vnfd=False)
            if image is not None:
                vdus.setdefault(add_idx(name, index), {})["vcImageId"] = image
        return {"parameters": {"nfv": with_additional_params({"VDU": vdus}, req, grant)}}

    @staticmethod
    def change_vnfpkg(req, inst, grant_req, grant, tmp_csar_dir):
        """The new package's template for all VNFCs; new flavors and images only for those of the grant request."""
        flavour_id = instance_flavour(inst)
        vnfd = script.get_vnfd(grant_req["dstVnfdId"], tmp_csar_dir)
        hot = vnfd.get_base_hot(flavour_id)
        top = hot["template"]
        taken = _take_vdus(vnfd, flavour_id, top)
        _clone(top, taken, _present(inst))
        nfv = script.init_nfv_dict(top)
        changed = {"resources": {}}
        _clone(changed, taken, _touched(inst, grant_req))
        new = script.init_nfv_dict(changed).get("VDU", {})
        for vdu in new.values():
            vdu.pop("locationConstraints", None)  # a machine that is changed stays in its zone
        fill_vdus(new, flavour_id, vnfd, {}, grant, rm_idx)
        left = _left(inst)
        # A package may read entries that the earlier one did not read: only new ones can be filled.
        vdus = {**nfv.get("VDU", {}), **left.get("VDU", {})}
        for name, vdu in new.items():
            vdus[name] = {**(left.get("VDU", {}).get(name) or {}), **vdu}
        connected = fill_cps(nfv.get("CP", {}), *requested(grant, req, inst), rm_idx, idx_of)
        cps = {**nfv.get("CP", {}), **left.get("CP", {})}
        for name, cp in connected.items():
            cps[name] = {**(cps[name] or {}), **cp}
        script.apply_ext_managed_vls(top, req, grant)
        if not (req.get("extManagedVirtualLinks") or grant.get("extManagedVirtualLinks")):
            script.apply_ext_managed_vls_from_inst(top, inst)
        return {**fields_of(top, with_additional_params({"VDU": vdus, "CP": cps}, req, grant), hot), "existing": False}

    @staticmethod
    def change_vnfpkg_rollback(req, inst, grant_req, grant, tmp_csar_dir):
        flavour_id = instance_flavour(inst)
        vnfd, hot = base_hot_of(inst, flavour_id, tmp_csar_dir)
        top = hot["template"]
        _clone(top, _take_vdus(vnfd, flavour_id, top), _present(inst))
        script.apply_ext_managed_vls_from_inst(top, inst)
        return {**fields_of(top, _left(inst), hot), "existing": False}
