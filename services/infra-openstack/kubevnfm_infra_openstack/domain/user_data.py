"""What the package's LCM operation user data is told, and what is kept from it: access data of VIMs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from kubevnfm_events.infra import CreateResources, StackCommand
from kubevnfm_secrets import KeyRing, Secret, map_secrets, revealed, without_secrets

from kubevnfm_infra_openstack.domain.grant import Granted, granted_flavors, granted_images
from kubevnfm_infra_openstack.domain.ports import PackageFlavour, UserDataInput
from kubevnfm_infra_openstack.domain.request import as_v3


def in_clear(document: Mapping[str, Any], ring: KeyRing) -> dict[str, Any]:
    """Return a request, instance or grant in v3 shape with its secrets in clear, those for VIMs left out."""
    kept = dict(document)
    if "vimConnectionInfo" in kept:
        kept["vimConnectionInfo"] = without_secrets(kept["vimConnectionInfo"])
    return as_v3(revealed(kept, ring))


def clear_texts(documents: Iterable[Mapping[str, Any]], ring: KeyRing) -> frozenset[str]:
    """Return every secret value of the documents, to be masked wherever foreign code may have printed it."""
    found: set[str] = set()

    def keep(secret: Secret) -> None:
        found.add(secret.reveal(ring))

    for document in documents:
        map_secrets(document, keep)
    return frozenset(found - {""})


def user_data_input(
    command: CreateResources | StackCommand,
    flavour: PackageFlavour,
    given: Granted,
    instance: Mapping[str, Any],
    secrets: frozenset[str],
) -> UserDataInput:
    """Return what user data is given."""
    images = {**given.image_by_node, **granted_images(given.grant)}
    return UserDataInput(
        api_version=command.api_version,
        request=given.request,
        instance=instance,
        grant_request=given.grant_request,
        grant=_with_images(given.grant, given.image_by_node),
        service_template=with_assets(flavour.service_template, images, granted_flavors(given.grant)),
        image_by_vdu=images,
        secrets=secrets,
    )


def _with_images(grant: Mapping[str, Any], images: Mapping[str, str]) -> Mapping[str, Any]:
    if not images:
        return grant
    assets = dict(grant.get("vimAssets") or {})
    made = [{"vnfdSoftwareImageId": node, "vimSoftwareImageId": image} for node, image in images.items()]
    assets["softwareImages"] = [*(assets.get("softwareImages") or ()), *made]
    return {**grant, "vimAssets": assets}


def with_assets(
    service_template: Mapping[str, Any], images: Mapping[str, str], flavors: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the service template with Glance ids and Nova flavors in place of the names that the VNFD gives.

    So that a v1 class, which looks nowhere else, finds this instance's image rather than the first of its name.
    """
    nodes = service_template.get("topology_template", {}).get("node_templates", {})
    if not isinstance(nodes, Mapping) or not (images or flavors):
        return service_template
    changed: dict[str, Any] = copy.deepcopy(dict(service_template))
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
