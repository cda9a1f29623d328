"""Chooses the Nova flavor of a VDU whose flavor neither grant nor VNFD names; makes one if none is large enough (A1t)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_csar.vnfd.model import Vdu

from kubevnfm_infra_openstack.domain import quota
from kubevnfm_infra_openstack.domain.hot import FLAVOR

MADE_FLAVOR: Final = "_kubevnfm_flavor"
"""The end of the name of a resource that makes a flavor. Heat puts it into the flavor's name."""
_MIB: Final = 1024 * 1024
_GIB: Final = 1024 * _MIB


def fitting(vdu: Vdu, flavors: Mapping[str, quota.Flavor]) -> str | None:
    """Return the smallest of Nova's flavors that satisfies the VDU; None if none does."""
    vcpus, ram_mib, disk_gib = _size(vdu)
    found = [
        (flavor.vcpus, flavor.ram_mib, flavor.disk_gib, name)
        for name, flavor in flavors.items()
        # The flavor of another stack is deleted with that stack.
        if not flavor.is_of_a_stack
        and flavor.vcpus >= vcpus
        and flavor.ram_mib >= ram_mib
        and (flavor.disk_gib == 0 or flavor.disk_gib >= disk_gib)
    ]
    return min(found)[3] if found else None


def made(vdu: Vdu) -> tuple[str, dict[str, object]]:
    """Return the name and the body of a resource that makes a flavor of the VDU's exact size.

    It is private: Heat gives access to the stack's own project. Nova lets administrators alone make flavors, unless its
    policy says otherwise; Heat then refuses the stack.
    """
    vcpus, ram_mib, disk_gib = _size(vdu)
    properties = {"vcpus": max(vcpus, 1), "ram": max(ram_mib, 1), "disk": disk_gib, "is_public": False}
    # One name for each size: in a rolling update, machines that have not changed yet need the earlier flavor.
    name = f"{vdu.vdu_id}_{vcpus}x{ram_mib}x{disk_gib}{MADE_FLAVOR}"
    return name, {"type": FLAVOR, "properties": properties}


def _size(vdu: Vdu) -> tuple[int, int, int]:
    """Return vCPUs, MiB of RAM and GiB of disk; no disk: as large as the image."""
    image = vdu.image
    ram_bytes = max(vdu.compute.memory_bytes, image.min_ram_bytes if image is not None else 0)
    disk_bytes = max(vdu.compute.disk_bytes, image.min_disk_bytes if image is not None else 0)
    return vdu.compute.vcpus, -(-ram_bytes // _MIB), -(-disk_bytes // _GIB)
