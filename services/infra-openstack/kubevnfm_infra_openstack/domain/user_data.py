"""The input of the package's LCM operation user data, which never contains access data of VIMs."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from kubevnfm_csar.vnfd.model import Flavour, Storage, Vdu
from kubevnfm_events.stacks import (
    ChangeTemplate,
    CreateResources,
    HealResources,
    ScaleResources,
    ServerFacts,
    StackCommand,
    UserData,
)
from kubevnfm_kit.ids import derived_id
from kubevnfm_secrets import KeyRing, Secret, map_secrets, revealed, without_secrets

from kubevnfm_infra_openstack.domain.grant import COMPUTE, Granted, granted_flavors, granted_images
from kubevnfm_infra_openstack.domain.hot import Parameters, Template, resources_of
from kubevnfm_infra_openstack.domain.ports import PackageFlavour, UserDataInput, VnfdTree
from kubevnfm_infra_openstack.domain.request import SolObject, as_v3

NO_PARAMETERS: Final[Parameters] = {}
_ZONE: Final = "default-zone"
"""The id of the zone in the grant; SOL003 leaves it to the grant."""


def in_clear(document: SolObject, ring: KeyRing) -> SolObject:
    """Return a request, instance or grant in v3 form with its secrets in clear, except those of VIMs."""
    changed = dict(document)
    if "vimConnectionInfo" in changed:
        # Code of a package must not be able to use the cloud with our credentials.
        changed["vimConnectionInfo"] = without_secrets(changed["vimConnectionInfo"])
    return as_v3(revealed(changed, ring))


def with_nfv(instance: SolObject, nfv: object) -> SolObject:
    """Return the VnfInstance with the parameter ``nfv`` of its stack in ``metadata``, unless it has one there."""
    info = instance.get("instantiatedVnfInfo")
    if not isinstance(info, Mapping) or nfv is None or "nfv" in (info.get("metadata") or {}):
        return instance
    return {**instance, "instantiatedVnfInfo": {**info, "metadata": {**(info.get("metadata") or {}), "nfv": nfv}}}


def clear_texts(documents: Iterable[SolObject], ring: KeyRing) -> frozenset[str]:
    """Return every secret value of the documents, to be masked in the output of foreign code."""
    found: set[str] = set()

    def collect(secret: Secret) -> None:
        found.add(secret.reveal(ring))

    for document in documents:
        map_secrets(document, collect)
    # An empty secret would mask the space between all letters.
    return frozenset(found - {""})


def user_data_input(
    command: CreateResources | StackCommand,
    flavour: PackageFlavour,
    given: Granted,
    instance: SolObject,
    secrets: frozenset[str],
    parameters: Parameters = NO_PARAMETERS,
) -> UserDataInput:
    """Return the input of the user data class. ``parameters``: those of the stack before the operation."""
    images = {**given.image_by_node, **granted_images(given.grant)}
    # As Tacker's local NFVO: images that are in Glance already are granted by name. Not where no machine is made: a
    # class replaces the image of a healed machine by the granted one.
    in_grant: dict[str, str] = {}
    if isinstance(command, CreateResources | ScaleResources | ChangeTemplate):
        in_grant = {**_named_images(flavour.vnfd), **given.image_by_node}
    return UserDataInput(
        api_version=command.api_version,
        request=given.request,
        instance=instance,
        grant_request=given.grant_request,
        grant=_with_images(_with_zone(given.grant or _granted_here(given.grant_request), given), in_grant),
        service_template=with_assets(flavour.service_template, images, granted_flavors(given.grant)),
        image_by_vdu=images,
        secrets=secrets,
        parameters=parameters,
        servers=command.servers if isinstance(command, HealResources) else (),
        group_size=_group_size(command, flavour.vnfd, given) if isinstance(command, ScaleResources) else None,
    )


def _group_size(command: ScaleResources, vnfd: Flavour, given: Granted) -> int | None:
    """Return how many machines the VDU of the scaled aspect is to have; None: the request names no aspect."""
    return next((command.counts.get(vdu) for vdu in vnfd.scaled_vdus(str(given.request.get("aspectId")))), None)


def has_numbered_resources(flavour: PackageFlavour, template: Template, servers: Iterable[ServerFacts]) -> bool:
    """Return whether a stack has a resource ``<vdu>-<n>`` for each machine, for which the Base HOT has the pattern ``<vdu>``.

    This is how StandardUserData of Tacker makes a stack. Built-in rules do not know the names of another class.
    """
    if flavour.hot is None:
        return False
    patterns = {vdu for vdu in flavour.vnfd.vdus if vdu in resources_of(flavour.hot.top.body)}
    patterns.difference_update(resources_of(template))
    made = [(server.group or server.name, server.vdu_id) for server in servers if server.vdu_id in patterns]
    # Without a machine, the VDU is one that only the new package has.
    return bool(made) and all(name.rpartition("-")[0] == vdu and _is_number(name) for name, vdu in made)


def creation_of(command: StackCommand) -> CreateResources:
    """Return the creation of a stack with all machines that a command leaves: a class computes it from those that are added.

    ``command``: with the InstantiateVnfRequest and the class.
    """
    asked = command.grant_request
    listed = asked.get("addResources") or []
    present = Counter(one.get("resourceTemplateId") for one in listed if one.get("type") == COMPUTE)
    more = [
        {"id": f"{vdu}-stays-{number}", "type": COMPUTE, "resourceTemplateId": vdu}
        for vdu, count in command.counts.items()
        for number in range(present[vdu], count)
    ]
    facts = {name: getattr(command, name) for name in CreateResources.model_fields if hasattr(command, name)}
    facts["grant_request"] = {
        **{name: value for name, value in asked.items() if name != "removeResources"},
        "operation": "INSTANTIATE",
        "addResources": [*listed, *more],
    }
    instance = {name: value for name, value in command.instance.items() if name != "instantiatedVnfInfo"}
    facts["instance"] = {**instance, "instantiationState": "NOT_INSTANTIATED"}
    return CreateResources(**facts)


def named_class(request: SolObject) -> UserData | None:
    """Return the class that a request names in its additionalParams, which was checked when the request came."""
    parameters = request.get("additionalParams") or {}
    path, name = (parameters.get(f"lcm-operation-user-data{end}") for end in ("", "-class"))
    return UserData(path=path, class_name=name) if isinstance(path, str) and isinstance(name, str) else None


def _is_number(name: str) -> bool:
    return name.rpartition("-")[2].isdecimal()


def _named_images(vnfd: Flavour) -> dict[str, str]:
    """Return the image names of the VNFD by VDU or storage."""
    parts: list[tuple[str, Vdu | Storage]] = [*vnfd.vdus.items(), *vnfd.storages.items()]
    return {name: part.image.name for name, part in parts if part.image is not None}


def _granted_here(grant_request: SolObject) -> SolObject:
    """Return the Grant of a VNFM without an NFVO, which grants everything; v2 classes read it as any other."""
    answers = {
        kind: [{"resourceDefinitionId": resource["id"]} for resource in grant_request[kind]]
        for kind in ("addResources", "removeResources", "updateResources")
        if grant_request.get(kind)
    }
    subject = {
        name: grant_request[name] for name in ("vnfInstanceId", "vnfLcmOpOccId") if grant_request.get(name) is not None
    }
    return {"id": derived_id("grant", *map(str, subject.values())), **subject, **answers}


def _with_zone(grant: SolObject, given: Granted) -> SolObject:
    """Return the grant with the default zone for each machine that is added, if the grant has no zones."""
    if given.default_zone is None or grant.get("zones"):
        return grant
    machines = {one["id"] for one in given.grant_request.get("addResources") or () if one.get("type") == COMPUTE}
    added = [
        {**one, "zoneId": _ZONE} if one.get("resourceDefinitionId") in machines else one
        for one in grant.get("addResources") or ()
    ]
    return {**grant, "zones": [{"id": _ZONE, "zoneId": given.default_zone}], "addResources": added}


def _with_images(grant: SolObject, images: Mapping[str, str]) -> SolObject:
    # v2 classes read images only from the grant. Those that the NFVO has granted stay.
    granted = granted_images(grant)
    more = [
        {"vnfdSoftwareImageId": node, "vimSoftwareImageId": image}
        for node, image in images.items()
        if node not in granted
    ]
    if not more:
        return grant
    assets = dict(grant.get("vimAssets") or {})
    assets["softwareImages"] = [*(assets.get("softwareImages") or ()), *more]
    return {**grant, "vimAssets": assets}


def with_assets(service_template: VnfdTree, images: Mapping[str, str], flavors: Mapping[str, str]) -> VnfdTree:
    """Return the service template with Glance ids and Nova flavors in place of the VNFD's names."""
    # A v1 class reads only the VNFD. By the name alone it could find another instance's image of the same name.
    nodes = service_template.get("topology_template", {}).get("node_templates", {})
    if not isinstance(nodes, Mapping) or not (images or flavors):
        return service_template
    changed = copy.deepcopy(dict(service_template))
    for name, node in changed["topology_template"]["node_templates"].items():
        image = node.get("properties", {}).get("sw_image_data")
        if name in images and isinstance(image, dict):
            image["name"] = images[name]
        if name in flavors:
            asked = (
                node.setdefault("capabilities", {})
                .setdefault("virtual_compute", {})
                .setdefault("properties", {})
                .setdefault("requested_additional_capabilities", {})
                .setdefault("properties", {})
            )
            asked["requested_additional_capability_name"] = flavors[name]
    return changed
