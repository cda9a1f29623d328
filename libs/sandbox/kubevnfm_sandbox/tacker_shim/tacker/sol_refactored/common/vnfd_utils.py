"""Vnfd: what scripts ask of an unpacked package."""

import os

import yaml

from tacker.sol_refactored.common import exceptions

_VDU = "tosca.nodes.nfv.Vdu.Compute"
_STORAGE = "tosca.nodes.nfv.Vdu.VirtualBlockStorage"
_POLICY = "tosca.policies.nfv."
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _load(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return yaml.load(file, Loader=_Loader)  # noqa: S506 - a safe loader


def _yaml_files(folder):
    if not os.path.isdir(folder):
        return []
    return sorted(name for name in os.listdir(folder) if name.endswith((".yaml", ".yml")))


def _at(tree, *path):
    for name in path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


class Vnfd:
    """The descriptor of one package."""

    def __init__(self, vnfd_id):
        self.vnfd_id = vnfd_id
        self.csar_dir = None
        self.tosca_meta = {}
        self.definitions = {}
        self.vnfd_flavours = {}

    def init_from_csar_dir(self, csar_dir):
        """Read TOSCA.meta and every file of Definitions/."""
        self.csar_dir = csar_dir
        try:
            self.tosca_meta = _load(csar_dir, "TOSCA-Metadata", "TOSCA.meta")
        except (OSError, yaml.YAMLError):
            self.tosca_meta = {}  # a package without it (SOL004 4.1.3), or with several blocks in it
        folder = os.path.join(csar_dir, "Definitions")
        self.definitions = {name: _load(folder, name) for name in _yaml_files(folder)}

    def get_vnfd_flavour(self, flavour_id):
        """The service template of a flavour, or None."""
        if flavour_id not in self.vnfd_flavours:
            for document in self.definitions.values():
                here = _at(document, "topology_template", "substitution_mappings", "properties", "flavour_id")
                if here == flavour_id:
                    self.vnfd_flavours[flavour_id] = document
        return self.vnfd_flavours.get(flavour_id)

    # --- nodes

    def _all_nodes(self, flavour_id):
        return _at(self.get_vnfd_flavour(flavour_id), "topology_template", "node_templates") or {}

    def get_nodes(self, flavour_id, node_type):
        return {name: node for name, node in self._all_nodes(flavour_id).items() if node["type"] == node_type}

    def get_vdu_nodes(self, flavour_id):
        return self.get_nodes(flavour_id, _VDU)

    def get_storage_nodes(self, flavour_id):
        return self.get_nodes(flavour_id, _STORAGE)

    def get_virtual_link_nodes(self, flavour_id):
        return self.get_nodes(flavour_id, "tosca.nodes.nfv.VnfVirtualLink")

    def get_vducp_nodes(self, flavour_id):
        return self.get_nodes(flavour_id, "tosca.nodes.nfv.VduCp")

    def get_vdu_cps(self, flavour_id, vdu_name):
        return [
            name
            for name, node in self.get_vducp_nodes(flavour_id).items()
            if any(requirement.get("virtual_binding") == vdu_name for requirement in node.get("requirements") or ())
        ]

    def get_vdu_storages(self, vdu_node):
        requirements = vdu_node.get("requirements") or ()
        return [requirement["virtual_storage"] for requirement in requirements if "virtual_storage" in requirement]

    def get_vl_name_from_cp(self, flavour_id, cp_data):
        links = [r["virtual_link"] for r in cp_data.get("requirements") or () if "virtual_link" in r]
        return links[0] if links else None

    def get_compute_flavor(self, flavour_id, vdu_name):
        """The Nova flavor's name that the VDU asks for, or None."""
        asked = _at(self._all_nodes(flavour_id), vdu_name, "capabilities", "virtual_compute", "properties")
        name = _at(
            asked, "requested_additional_capabilities", "properties", "requested_additional_capability_name"
        )
        return name or None

    # --- images

    def get_sw_image(self, flavour_id):
        """Image name by VDU or storage."""
        return {name: data["name"] for name, data in self.get_sw_image_data(flavour_id).items()}

    def get_sw_image_data(self, flavour_id):
        """sw_image_data by VDU or storage, with ``file`` where the node has an image artifact."""
        found = {}
        for name, node in self._all_nodes(flavour_id).items():
            data = _at(node, "properties", "sw_image_data")
            if node["type"] in (_VDU, _STORAGE) and data:
                file = _at(node, "artifacts", "sw_image", "file")
                found[name] = {**data, "file": file} if file else dict(data)
        return found

    def get_vnfd_properties(self):
        return {"vnfConfigurableProperties": {}, "extensions": {}, "metadata": {}}

    # --- Base HOT

    def get_base_hot(self, flavour_id):
        """``{"template": dict, "files": {name: dict}}``; empty when the flavour has no Base HOT."""
        folder = os.path.join(self.csar_dir, "BaseHOT", flavour_id)
        hot = {}
        for name in _yaml_files(folder)[:1]:
            hot["template"] = _load(folder, name)
        nested = os.path.join(folder, "nested")
        files = {name: _load(nested, name) for name in _yaml_files(nested)}
        if hot and files:
            hot["files"] = files
        return hot

    # --- policies

    def get_policy_values_by_type(self, flavour_id, policy_type):
        listed = _at(self.get_vnfd_flavour(flavour_id), "topology_template", "policies") or []
        entries = [listed] if isinstance(listed, dict) else listed
        return [policy for entry in entries for policy in entry.values() if policy["type"] == policy_type]

    def _policies(self, flavour_id, name):
        return self.get_policy_values_by_type(flavour_id, _POLICY + name)

    def get_default_instantiation_level(self, flavour_id):
        for policy in self._policies(flavour_id, "InstantiationLevels"):
            return _at(policy, "properties", "default_level")
        return None

    def get_vdu_num(self, flavour_id, vdu_name, instantiation_level):
        for policy in self._policies(flavour_id, "VduInstantiationLevels"):
            if vdu_name in policy.get("targets", []):
                return _at(policy, "properties", "levels", instantiation_level, "number_of_instances")
        return 0

    def get_initial_delta(self, flavour_id, vdu_id):
        for policy in self._policies(flavour_id, "VduInitialDelta"):
            if vdu_id in policy.get("targets", []):
                return _at(policy, "properties", "initial_delta", "number_of_instances")
        return None

    def get_scale_vdu_and_num(self, flavour_id, aspect_id):
        """Instances per step by VDU; one step size for all levels."""
        delta = None
        for policy in self._policies(flavour_id, "ScalingAspects"):
            delta = (_at(policy, "properties", "aspects", aspect_id, "step_deltas") or [delta])[0]
        found = {}
        for policy in self._policies(flavour_id, "VduScalingAspectDeltas") if delta is not None else ():
            if _at(policy, "properties", "aspect") != aspect_id:
                continue
            number = _at(policy, "properties", "deltas", delta, "number_of_instances")
            if number is None:
                raise exceptions.DeltaMissingInVnfd(delta=delta)
            found.update({vdu: number for vdu in policy.get("targets", [])})
        return found

    def get_scale_info_from_inst_level(self, flavour_id, inst_level):
        for policy in self._policies(flavour_id, "InstantiationLevels"):
            return _at(policy, "properties", "levels", inst_level, "scale_info") or {}
        return {}

    def get_max_scale_level(self, flavour_id, aspect_id):
        for policy in self._policies(flavour_id, "ScalingAspects"):
            level = _at(policy, "properties", "aspects", aspect_id, "max_scale_level")
            if level is not None:
                return level
        return 0

    # --- placement

    def get_placement_groups(self, flavour_id):
        listed = _at(self.get_vnfd_flavour(flavour_id), "topology_template", "groups") or []
        entries = [listed] if isinstance(listed, dict) else listed
        return {
            name: group["members"]
            for entry in entries
            for name, group in entry.items()
            if group["type"] == "tosca.groups.nfv.PlacementGroup"
        }

    def _targets(self, flavour_id, rule):
        groups = self.get_placement_groups(flavour_id)
        found = []
        for policy in self._policies(flavour_id, rule):
            scope = policy["properties"]["scope"]
            if scope in ("zone", "nfvi_node"):
                found.append(([one for target in policy["targets"] for one in groups.get(target, [target])], scope))
        return found

    def get_affinity_targets(self, flavour_id):
        return self._targets(flavour_id, "AffinityRule")

    def get_anti_affinity_targets(self, flavour_id):
        return self._targets(flavour_id, "AntiAffinityRule")
