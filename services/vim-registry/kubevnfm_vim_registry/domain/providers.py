"""``extra.capi`` of a VIM: the providers of Cluster API that VNFs have installed there (capi.md CR-045)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubevnfm_events import CapiProvider, CapiProviders

CAPI = "capi"
"""The attribute of ``extra``."""


def shown_providers(installed: Iterable[CapiProviders]) -> dict[str, Any]:
    """Return the attribute for the providers of several VNFs: there is one core provider, and any number of others."""
    listed = list(installed)
    core = next((each.core for each in listed if each.core is not None), None)
    return {
        "core": None if core is None else _shown(core),
        "bootstrap": [_shown(each) for one in listed for each in one.bootstrap],
        "controlPlane": [_shown(each) for one in listed for each in one.control_plane],
        "infrastructure": [_shown(each) for one in listed for each in one.infrastructure],
        "contract": None if core is None else core.contract,
    }


def _shown(provider: CapiProvider) -> dict[str, Any]:
    return provider.model_dump(mode="json")
