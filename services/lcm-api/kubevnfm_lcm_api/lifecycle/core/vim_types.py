"""On which types of VIM the resources of a flavour can be, as its package says."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.vnfd.model import ComputeDemand, Flavour
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.vim import KUBERNETES, OPENSTACK

_ANY: Final = (OPENSTACK, KUBERNETES)


def vim_types(flavour: Flavour, hot: BaseHot | None, files: Collection[str]) -> tuple[str, ...]:
    """Return the types of VIM that a flavour can be on: both, if the package does not say."""
    if hot is not None:
        return (OPENSTACK,)
    if any(vdu.kind == "container" for vdu in flavour.vdus.values()):
        return (KUBERNETES,)
    has_machines = any(vdu.compute != ComputeDemand() for vdu in flavour.vdus.values())
    has_objects = any(path.startswith("Files/") and path.endswith((".yaml", ".yml")) for path in files)
    if has_machines != has_objects:
        return (OPENSTACK,) if has_machines else (KUBERNETES,)
    return _ANY


def check_objects(place: str, flavour: Flavour, hot: BaseHot | None, files: Collection[str]) -> None:
    """Raise Unprocessable, for ``place``, for a package of machines, which a CNF cannot be changed to."""
    if vim_types(flavour, hot, files) == (OPENSTACK,):
        why = "a Base HOT" if hot is not None else "VDUs that are machines, and no manifests"
        raise Unprocessable(
            place, f"flavour {flavour.flavour_id} is one of machines: it has {why}; a package of containers expected"
        )
