"""The parts of a request that scripts of the package get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubevnfm_events import ApiVersion
from kubevnfm_secrets import hide
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import VnfInstance

from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft


def script_request(request: SolType, original: Mapping[str, Any], version: ApiVersion) -> dict[str, Any]:
    """Return the request in v2 form, as scripts of packages expect it. ``original``: the body as it came."""
    if version == "v2":
        return dict(hide(original))
    return request.model_dump(by_alias=True, exclude_unset=True)


def with_scripts(
    common: InstantiateDraft, scripts: dict[str, str], request: SolType, original: Mapping[str, Any]
) -> InstantiateDraft:
    """Return the draft with scripts by phase, and with the request as they expect it."""
    asked = script_request(request, original, common.api_version) if scripts else {}
    return common.model_copy(update={"scripts": scripts, "script_request": asked})


def requested_instance(vnf: VnfInstance, common: InstantiateDraft) -> dict[str, Any]:
    """Return the VnfInstance with what an instantiate request adds to it, as scripts and user data expect it."""
    merged = {
        "vim_connection_info": common.vim_connections,
        "extensions": {**vnf.extensions, **common.extensions},
        "vnf_configurable_properties": {**vnf.vnf_configurable_properties, **common.vnf_configurable_properties},
    }
    return vnf.model_copy(update=merged).model_dump(by_alias=True, exclude_none=True)
