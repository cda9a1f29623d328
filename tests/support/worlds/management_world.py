"""A management cluster of lcm-api alone: the sample's providers, installed with the answers of twins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from kubevnfm_csar.capi_providers import providers_of
from kubevnfm_events import CapiProviders
from kubevnfm_events.objects import ObjectFacts, ObjectsApplied, ObjectsReplaced
from packages.package_variants import CAPI_MANAGEMENT, SAMPLES, changed_package

from worlds.capi_management import files_of
from worlds.lcm_world import World

APPLY, REPLACE = "infra.k8s.apply_objects", "infra.k8s.replace_objects"
CORE_FILE = "Files/kubernetes/core.yaml"
VNFD = "Definitions/capi-management.vnfd.yaml"
OTHER_MANAGEMENT = "3a0e6c0e-5d0b-4a52-9a36-0f6a5a3a7f98"


def objects_of(files: dict[str, str]) -> list[dict[str, Any]]:
    """The objects of manifests."""
    return [each for text in files.values() for each in yaml.safe_load_all(text)]


def installed(files: dict[str, str] | None = None) -> CapiProviders:
    """The providers of the sample, or of these manifests."""
    providers = providers_of(objects_of(files or files_of("capi-management")))
    assert providers is not None
    return providers


def applied(files: dict[str, str] | None = None) -> ObjectsApplied:
    """Return the answer of infra-k8s once the manifests are applied."""
    found = files or files_of("capi-management")
    objects = tuple(
        ObjectFacts(
            api_version=each["apiVersion"],
            kind=each["kind"],
            namespace=each["metadata"].get("namespace"),
            name=each["metadata"]["name"],
            uid=each["metadata"]["name"],
        )
        for each in objects_of(found)
    )
    return ObjectsApplied(namespace="default", objects=objects, providers=installed(found))


def replaced(files: dict[str, str]) -> ObjectsReplaced:
    """Return the answer of infra-k8s once other manifests are applied."""
    return ObjectsReplaced(**dict(applied(files)))


async def installed_on(world: World, vim_id: str = "k8s") -> str:
    """Return the sample, INSTANTIATED on a VIM that is registered."""
    world.twins.answers[APPLY] = applied()
    await world.sample("capi-management")
    world.vims.add(vim_id, "kubernetes")
    instance_id = await world.create("capi-management")
    vims = {"management": {"vimId": vim_id, "vimType": "kubernetes"}}
    operation_id = await world.instantiate(instance_id, "capi-management", vimConnectionInfo=vims)
    await world.reached(operation_id, "COMPLETED")
    return instance_id


def other_version(changes: Mapping[str, str]) -> dict[str, str]:
    """The manifests of the sample with texts of the core provider replaced."""
    files = files_of("capi-management")
    for old, new in changes.items():
        assert old in files[CORE_FILE]
        files[CORE_FILE] = files[CORE_FILE].replace(old, new)
    return files


async def other_package(world: World, files: Mapping[str, str]) -> None:
    """Upload the sample with other manifests under another VNFD id."""
    descriptor = (SAMPLES / "capi-management" / VNFD).read_text(encoding="utf-8")
    changed = {**files, VNFD: descriptor.replace(CAPI_MANAGEMENT, OTHER_MANAGEMENT)}
    await world.upload(changed_package(world.folder, "capi-management", changed))
