"""The attributes that an instance takes over from its package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_events import PackageRef
from kubevnfm_secrets import SecretParams


def package_modifications(
    vnf: Mapping[str, str], extensions: SecretParams, vnf_configurable_properties: SecretParams
) -> dict[str, Any]:
    """Return ModificationsTriggeredByVnfPkgChange (SOL003 5.5.2.22); ``vnf``: what follows the package, by our names."""
    named = {
        "vnfd_id": "vnfdId",
        "vnf_provider": "vnfProvider",
        "vnf_product_name": "vnfProductName",
        "vnf_software_version": "vnfSoftwareVersion",
        "vnfd_version": "vnfdVersion",
    }
    return {
        **{named[name]: value for name, value in vnf.items() if name in named},
        **({"extensions": extensions} if extensions else {}),
        **({"vnfConfigurableProperties": vnf_configurable_properties} if vnf_configurable_properties else {}),
    }


def identity(vnfd: Vnfd, package: PackageRef) -> dict[str, str]:
    """Return the attributes of a VNF instance that its package decides."""
    return {
        "vnfd_id": vnfd.vnfd_id,
        "vnf_provider": vnfd.provider,
        "vnf_product_name": vnfd.product_name,
        "vnf_software_version": vnfd.software_version,
        "vnfd_version": vnfd.descriptor_version,
        "vnf_pkg_id": package.package_id,
    }
