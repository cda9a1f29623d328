"""The parts of a request that scripts of the package get."""

from __future__ import annotations

from typing import Any

from kubevnfm_secrets import hide
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import VnfInstance

from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft
from kubevnfm_lcm_api.lifecycle.core.kind import Asked


def script_request(asked: Asked[SolType]) -> dict[str, Any]:
    """Return the request in v2 form, as scripts of packages expect it."""
    if asked.version == "v2":
        return dict(hide(asked.original))
    return asked.request.model_dump(by_alias=True, exclude_unset=True)


def script_fields(scripts: dict[str, str], asked: Asked[SolType], vnf: VnfInstance) -> dict[str, Any]:
    """Return the fields of a `ScriptedDraft` with these scripts by phase; ``vnf``: as it is before the operation."""
    return {
        "scripts": scripts,
        "script_request": script_request(asked) if scripts else {},
        "instance": vnf.model_dump(by_alias=True, exclude_none=True) if scripts else {},
    }


def requested_instance(vnf: VnfInstance, common: InstantiateDraft) -> VnfInstance:
    """Return the VnfInstance with what an instantiate request adds to it, as scripts and user data expect it."""
    merged = {
        "vim_connection_info": common.vim_connections,
        "extensions": {**vnf.extensions, **common.extensions},
        "vnf_configurable_properties": {**vnf.vnf_configurable_properties, **common.vnf_configurable_properties},
    }
    return vnf.model_copy(update=merged)
