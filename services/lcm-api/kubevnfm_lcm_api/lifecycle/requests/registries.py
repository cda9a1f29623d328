"""Private registries of a request against the package: the certificates of their authorities (sequences.md 2.6)."""

from __future__ import annotations

from typing import Final

from kubevnfm_cluster import ROOT, ClusterParameters, check_certificate
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.domain.ports import PackageCatalogue

CERTIFICATE_LIMIT: Final = 1024 * 1024
"""Bytes. The authorities of a whole operating system take 0.2 MiB."""


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
