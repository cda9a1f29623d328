"""Private registries of a request against the package: those that a cluster uses, and one that a VNF becomes.

Sources: sequences.md 2.6 and 2.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_cluster.parameters import ROOT, ClusterParameters
from kubevnfm_cluster.registries import check_certificate
from kubevnfm_cluster.registry_vnf import REGISTRY_ROOT, check_key_of_certificate, request_registry
from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import KeyRing

from kubevnfm_lcm_api.lifecycle.clusters.places import FLOATING_IP, PORT, connection_point
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue

CERTIFICATE_LIMIT: Final = 1024 * 1024
"""Bytes. The authorities of a whole operating system take 0.2 MiB."""
_NO_KEYS: Final = KeyRing([bytes(32)])
"""A secret of a request is plain in memory: revealing it needs no key."""


async def check_certificates(packages: PackageCatalogue, package: PackageRef, cluster: ClusterParameters) -> None:
    """Refuse a file that is no certificate. Raises Unprocessable naming the field."""
    for index, registry in enumerate(cluster.private_registry_connection_info):
        path = registry.certificate_path
        if path is None:
            continue
        content = await packages.file(package.package_id, path, limit_bytes=CERTIFICATE_LIMIT)
        try:
            check_certificate(content or b"")
        except ValueError as error:
            field = f"{ROOT}/private_registry_connection_info/{index}/certificate_path"
            raise Unprocessable(field, f"{path} of the package is not a certificate in PEM form") from error


async def check_registry(
    packages: PackageCatalogue,
    package: PackageRef,
    additional_params: Mapping[str, Any],
    flavour: Flavour,
    base_hot: BaseHot | None,
    *,
    level_id: str | None,
) -> None:
    """Refuse the parameters of a private registry that do not fit VNFD, templates and package.

    Raises: InvalidInput, Unprocessable naming the field (``additionalParams/...``).
    """
    # In a thread, because a private key may have to be opened with its passphrase.
    asked = await asyncio.to_thread(request_registry, additional_params)
    machines = sum(flavour.initial_counts(level_id).values())
    if machines != 1:
        raise Unprocessable("vnfdId", f"the VNFD has {machines} machines: one expected for a private registry")
    connection_point(
        f"{REGISTRY_ROOT}/ssh_cp_name",
        asked.ssh_cp_name,
        _connection_points(flavour, base_hot),
        where="the templates" if base_hot is not None else flavour.file,
        kinds=(PORT, FLOATING_IP),
    )
    names = await packages.file_names(package.package_id)
    for attribute, path in (("image_path", asked.image_path), ("x_certificate_path", asked.x_certificate_path)):
        if path is not None and path not in names:
            raise Unprocessable(f"{REGISTRY_ROOT}/{attribute}", f"the package has no file {path}")
    if asked.x_certificate_path is not None and asked.x_certificate_key is not None:
        content = await packages.file(package.package_id, asked.x_certificate_path, limit_bytes=CERTIFICATE_LIMIT)
        check_key_of_certificate(content or b"", asked.x_certificate_key.reveal(_NO_KEYS))


def _connection_points(flavour: Flavour, hot: BaseHot | None) -> Mapping[str, str]:
    """Return the type by name of every resource; without templates the VNFD's connection points stand for ports."""
    if hot is None:
        return dict.fromkeys(flavour.cps, PORT)
    members = (hot.member(name) for name in hot.top.resource_types)
    nested = {name: kind for member in members if member is not None for name, kind in member.resource_types.items()}
    return {**nested, **hot.top.resource_types}
