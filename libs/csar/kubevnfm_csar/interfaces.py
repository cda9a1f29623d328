"""The network interfaces that a VNFD asks for, compared with those that a stack can have."""

from __future__ import annotations

from typing import Final

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.vnfd.model import Cp, Flavour

_VNIC_TYPES: Final = (
    "normal", "virtio", "direct", "macvtap", "baremetal", "direct-physical", "virtio-forwarder", "smart-nic", "vdpa",
    "accelerator-direct", "accelerator-direct-physical", "remote-managed",
)  # fmt: skip
"""The types of Neutron (``binding:vnic_type``), and ``virtio`` of SOL001 V2.6.1, which is ``normal``."""


def interface_warnings(flavour: Flavour, *, has_base_hot: bool) -> list[str]:
    """Return a warning for each requirement on a network interface: none is passed on, beside ``vnic_type``.

    ``has_base_hot``: whether templates of the package make the ports, which then have to fulfil the requirements.
    Raises: PackageRefused for a mandatory requirement on a port that kubevnfm makes, and for a type that no port can have.
    """
    found = []
    for cp in flavour.cps.values():
        is_made = not has_base_hot and cp.kind == "vdu" and _is_of_machine(cp, flavour)
        if is_made and cp.vnic_type not in _VNIC_TYPES:
            raise PackageRefused(
                f"{cp.cp_id}.vnic_type: {cp.vnic_type}; {', '.join(_VNIC_TYPES)} are supported", file=flavour.file
            )
        for requirement in cp.interface_requirements:
            if not requirement.asks:
                continue
            place = f"{cp.cp_id}: network interface requirement {requirement.name} ({', '.join(requirement.asks)})"
            if is_made and requirement.is_mandatory:
                raise PackageRefused(f"{place}: mandatory, and not supported without a Base HOT", file=flavour.file)
            reason = "the Base HOT has to fulfil it" if has_base_hot else "not supported, so it has no effect"
            found.append(f"{flavour.file}: {place}: {reason}")
    return found


def _is_of_machine(cp: Cp, flavour: Flavour) -> bool:
    vdu = flavour.vdus.get(cp.vdu_id) if cp.vdu_id is not None else None
    return vdu is not None and vdu.kind == "compute"
