"""The management drivers of this VNFM: what a VNFD may map the phases of the life cycle to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_csar import Flavour
from kubevnfm_kit.errors import Unprocessable

NOOP: Final = "vnflcm_noop"
"""Tacker's driver without work: a phase that is mapped to it is as one that is not mapped."""
CLUSTER_DRIVERS: Final = frozenset({"mgmt-drivers-kubernetes", "kubernetes"})
"""Implementation names of the built-in cluster driver."""
CONTAINER_UPDATE: Final = "mgmt-container-update"
"""Tacker's driver that changes a CNF's ConfigMaps, Secrets and images at ``modify_information_end``, and only there."""
CNF_DRIVERS: Final = frozenset({CONTAINER_UPDATE})
"""Implementation names of the built-in drivers of CNFs."""


def driven_phases(flavour: Flavour) -> dict[str, str]:
    """Return the management driver by phase, without phases whose driver has no work."""
    return {phase: driver.name for phase, driver in flavour.phases.items() if driver.name != NOOP}


def check_drivers(phases: Mapping[str, str], known: frozenset[str], *, kind: str) -> None:
    """Raise Unprocessable for a phase whose driver this VNFM does not have for VNFs of the ``kind``.

    Nothing of a VNFD is left out silently: a driver either runs, or the request is refused.
    """
    for phase, driver in phases.items():
        if driver not in known:
            raise Unprocessable(
                "vnfdId",
                f"the VNFD maps {phase} to management driver {driver}; "
                f"for {kind} this VNFM knows {', '.join(sorted({*known, NOOP}))}",
            )
