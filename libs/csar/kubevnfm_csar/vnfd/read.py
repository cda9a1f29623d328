"""Reads a VNFD (SOL001) from a package: package-wide facts, and every deployment flavour."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from copy import deepcopy
from itertools import islice
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_csar.errors import PackageRefused, UnknownFlavour
from kubevnfm_csar.files import PackageFiles
from kubevnfm_csar.manifest import read_entry
from kubevnfm_csar.vnfd import nodes, policies
from kubevnfm_csar.vnfd.marks import secret_names
from kubevnfm_csar.vnfd.model import MOST_VNFCS, Flavour, InitialValues, Vnfd
from kubevnfm_csar.vnfd.parameters import declared_parameters
from kubevnfm_csar.vnfd.phases import phase_drivers
from kubevnfm_csar.vnfd.templates import Templates, read_templates
from kubevnfm_csar.vnfd.topology import Node, Topology
from kubevnfm_csar.vnfd.types import STANDARD_FILE, TypeTree
from kubevnfm_csar.vnfd.unknown import unknown_parts
from kubevnfm_csar.vnfd.values import mapping, resolve, sequence, text

_AUTOMATION: Final = {"is_autoscale_enabled": "isAutoscaleEnabled", "is_autoheal_enabled": "isAutohealEnabled"}
"""SOL003 writes these two of vnfConfigurableProperties in camel case."""

_MOST_UNKNOWN: Final = 20
"""Warnings about what is not known, of all files together: a search for the nearest name takes up to 50 ms."""


def read_vnfd(files: PackageFiles, *, entry: str | None = None) -> Vnfd:
    """Return the VNFD of a package, in the archive or unpacked.

    Raises: PackageRefused with the file and its fault.
    """
    entry = entry or read_entry(files)
    templates = read_templates(files, entry)
    topologies = _topologies(files, templates)
    chosen = _flavour_topologies(topologies, entry)
    left = _MOST_UNKNOWN
    for name, topology in topologies.items():
        if not STANDARD_FILE.match(posixpath.basename(name)):
            left -= topology.warn_of(islice(unknown_parts(topology), left))
    facts = _facts(topologies[entry], list(chosen.values()))
    vdus = nodes.vdu_names(chosen.values())
    flavours = {flavour_id: _flavour(flavour_id, topology, vdus) for flavour_id, topology in chosen.items()}
    # A new instance has no flavour yet: its initial values come from the top file, or from the first flavour if the top
    # file has no VNF node.
    top = topologies[entry].vnf_node() or next(iter(chosen.values())).vnf_node()
    selector = mapping(mapping(templates[entry].get("topology_template")).get("inputs")).get("selected_flavour")
    default = text(mapping(selector).get("default"))
    return Vnfd(
        vnfd_id=_required(facts, "descriptor_id", file=entry),
        provider=_required(facts, "provider", file=entry),
        product_name=_required(facts, "product_name", file=entry),
        software_version=_required(facts, "software_version", file=entry),
        descriptor_version=_required(facts, "descriptor_version", file=entry),
        vnfm_info=tuple(text(item) for item in _as_list(facts.get("vnfm_info"))),
        default_flavour_id=default if default in flavours else (next(iter(flavours)) if len(flavours) == 1 else None),
        files=tuple(templates),
        flavours=flavours,
        initial_values=_initial_values(topologies[entry], top),
        warnings=tuple(warning for topology in topologies.values() for warning in topology.warnings),
        secret_names=secret_names(templates.values(), topologies[entry].tree),
    )


def flavour_template(files: PackageFiles, flavour_id: str) -> JsonObject:
    """Return the service template of a flavour as plain data: the ``vnfd_dict`` of Tacker's v1 user data.

    The requirements of substitution_mappings are left out, as Tacker leaves them out.
    Raises: UnknownFlavour, PackageRefused.
    """
    templates = read_templates(files, entry := read_entry(files))
    chosen = _flavour_topologies(_topologies(files, templates), entry)
    if flavour_id not in chosen:
        raise UnknownFlavour(flavour_id, known=tuple(chosen))
    template: JsonObject = deepcopy(templates[chosen[flavour_id].file])
    mappings = template.get("topology_template", {}).get("substitution_mappings")
    if isinstance(mappings, dict):
        mappings.pop("requirements", None)
    return template


def _topologies(files: PackageFiles, templates: Templates) -> dict[str, Topology]:
    tree = TypeTree(templates.values())
    return {name: Topology(document, file=name, tree=tree, files=files) for name, document in templates.items()}


def _flavour_topologies(topologies: Mapping[str, Topology], entry: str) -> dict[str, Topology]:
    """Return the template of each flavour: the files with substitution_mappings for one, otherwise the entry file as the only one.

    SOL001 puts each flavour of several into a file of its own and lets a VNFD of one flavour be one file, whose
    VNF node then carries the flavour's name.
    """
    found: dict[str, Topology] = {}
    for topology in topologies.values():
        flavour_id = topology.flavour_id
        if flavour_id is None:
            continue
        if flavour_id in found:
            raise topology.refused(f"flavour {flavour_id} is also described in {found[flavour_id].file}")
        found[flavour_id] = topology
    if found:
        return found
    vnf = topologies[entry].vnf_node()
    only = text(vnf.properties.get("flavour_id")) if vnf is not None else ""
    if not only:
        raise PackageRefused(
            "no deployment flavour: substitution_mappings.properties.flavour_id expected in it or in a file it imports",
            file=entry,
        )
    return {only: topologies[entry]}


def _facts(top: Topology, flavours: list[Topology]) -> JsonObject:
    """Return the VNF's properties: of the top file's VNF node, else the flavours', else the defaults of the types."""
    facts: JsonObject = {}
    # The last one wins, so the top file comes last. Defaults of all types first: no default may replace a value that a
    # node sets.
    for topology in [*reversed(flavours), top]:
        node_type = topology.substitution.get("node_type")
        if isinstance(node_type, str):
            facts.update(topology.tree.defaults(node_type))
    for topology in [*reversed(flavours), top]:
        vnf = topology.vnf_node()
        if vnf is not None:
            facts.update({key: value for key, value in vnf.properties.items() if value is not None})
    return facts


def _required(facts: JsonMapping, name: str, *, file: str) -> str:
    value = text(facts.get(name))
    if not value:
        raise PackageRefused(
            f"{name} is missing: a property of the VNF node, or a default of its type, expected", file=file
        )
    return value


def _as_list(value: Any) -> list[Any]:
    return sequence(value) or ([] if value is None or isinstance(value, list) else [value])


def _flavour(flavour_id: str, topology: Topology, all_vdus: Collection[str]) -> Flavour:
    """``all_vdus``: the names of those of all flavours."""
    vnf = topology.vnf_node()
    levels, default_level = policies.instantiation_levels(topology)
    aspects = policies.scaling_aspects(topology)
    for level in levels.values():
        for aspect_id, scale_level in level.scale_levels.items():
            if aspect_id not in aspects:
                topology.warn(
                    f"level {level.level_id}: aspect {aspect_id} is not declared: its scale level is not used"
                )
            # Checked at onboarding: in an operation the contradiction would show only after resources exist.
            elif scale_level > aspects[aspect_id].max_scale_level:
                raise topology.refused(
                    f"level {level.level_id}: {aspect_id} at {scale_level} is above its max_scale_level"
                )
    flavour = Flavour(
        flavour_id=flavour_id,
        file=topology.file,
        description=text(vnf.properties.get("flavour_description")) if vnf is not None else "",
        vnf_node=vnf.name if vnf is not None else None,
        vdus=nodes.vdus(topology),
        cps=nodes.connection_points(topology),
        virtual_links=nodes.virtual_links(topology),
        storages=nodes.storages(topology),
        phases=phase_drivers(topology, vnf, all_vdus),
        aspects=aspects,
        initial_deltas=policies.initial_deltas(topology),
        levels=levels,
        default_level=default_level,
        affinity_rules=policies.affinity_rules(topology),
        package_changes=policies.package_changes(topology),
        initial_values=_initial_values(topology, vnf),
        parameters=declared_parameters(topology, vnf),
    )
    _check_references(flavour, topology)
    _check_amounts(flavour, topology)
    return flavour


def _check_amounts(flavour: Flavour, topology: Topology) -> None:
    """Raise PackageRefused for a level that begins with more VNFCs, or at a higher scale level, than is worked on."""
    for level in flavour.levels.values():
        for aspect_id, scale_level in level.scale_levels.items():
            if scale_level > MOST_VNFCS:
                raise topology.refused(
                    f"level {level.level_id}: {aspect_id} at {scale_level}; at most {MOST_VNFCS} expected"
                )
    for level_id in (None, *flavour.levels):
        amount = sum(flavour.initial_counts(level_id).values())
        if amount > MOST_VNFCS:
            what = f"level {level_id}" if level_id is not None else "the initial deltas and vdu_profiles"
            raise topology.refused(f"{what}: {amount} VNFCs; at most {MOST_VNFCS} expected")


def _check_references(flavour: Flavour, topology: Topology) -> None:
    for cp in flavour.cps.values():
        if cp.kind == "vdu" and cp.vdu_id is not None and cp.vdu_id not in flavour.vdus:
            raise _wrong_reference(topology, f"{cp.cp_id}: virtual_binding", cp.vdu_id, "not a VDU")
        if cp.virtual_link is not None and cp.virtual_link not in flavour.virtual_links:
            raise _wrong_reference(topology, f"{cp.cp_id}: virtual_link", cp.virtual_link, "no virtual link")
    for vdu in flavour.vdus.values():
        for storage in vdu.storages:
            if storage not in flavour.storages:
                raise _wrong_reference(topology, f"{vdu.vdu_id}: virtual_storage", storage, "no storage")


def _wrong_reference(topology: Topology, what: str, name: str, lacks: str) -> PackageRefused:
    """Return the refusal, with the unknown type of the node that is named, if that is why it is not found."""
    kind = next((f"; {one}" for one in unknown_parts(topology) if one.startswith(f"node {name}: type ")), "")
    return topology.refused(f"{what} names {name}, which is {lacks}{kind}")


def _initial_values(topology: Topology, vnf: Node | None) -> InitialValues:
    """Return the VNF node's values over the defaults of the properties' types."""
    if vnf is None:
        return InitialValues()
    definitions = topology.tree.properties(vnf.type)
    own = mapping(resolve(mapping(vnf.body.get("properties")), topology.inputs))

    def values(name: str) -> JsonObject:
        kind = definitions.get(name, {}).get("type")
        defaults = topology.tree.nested_defaults(kind) if isinstance(kind, str) else {}
        given = _overlay({**defaults, **mapping(definitions.get(name, {}).get("default"))}, mapping(own.get(name)))
        return dict(mapping(topology.tree.typed(given, definitions.get(name, {}))))

    configurable = values("configurable_properties")
    further = configurable.pop("additional_configurable_properties", None)
    configurable = {**configurable, **mapping(further)}
    modifiable = values("modifiable_attributes")
    return InitialValues(
        configurable_properties={_AUTOMATION.get(key, key): value for key, value in configurable.items()},
        extensions=dict(mapping(modifiable.get("extensions"))),
        metadata=dict(mapping(modifiable.get("metadata"))),
    )


def _overlay(base: JsonMapping, over: JsonMapping) -> JsonObject:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _overlay(old, value)
        elif value is not None:
            merged[key] = value
    return merged
