"""Warns about what a request has and nothing reads: in its free containers (api.md 3.3), and beside other attributes (attributes.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_cluster.registry_vnf import REGISTRY_VNF
from kubevnfm_cluster.request import LOAD_BALANCER, AdditionalParams
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_secrets import SECRET_NAMES
from kubevnfm_sol.access import unread_extra
from kubevnfm_sol.base import SolType
from kubevnfm_sol.connectivity import of_indirect_mode
from kubevnfm_sol.free_containers import unread
from kubevnfm_sol.lcm import OperateVnfRequest, TerminateVnfRequest
from kubevnfm_sol.vim import VimConnectionInfo

from kubevnfm_lcm_api.http.spelling import PARAMETERS
from kubevnfm_lcm_api.lifecycle.containers.charts import VALUE_NAMES
from kubevnfm_lcm_api.lifecycle.containers.charts import VALUES as CHART_VALUES
from kubevnfm_lcm_api.lifecycle.containers.helm_releases import REPLICA_VALUES
from kubevnfm_lcm_api.lifecycle.containers.repair import FORCE
from kubevnfm_lcm_api.lifecycle.containers.requested_replacement import COORDINATE
from kubevnfm_lcm_api.lifecycle.containers.scaling import LEAVING
from kubevnfm_lcm_api.lifecycle.core import request_parameters as common
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.machines.inventory import PORT
from kubevnfm_lcm_api.lifecycle.machines.package_fit import USER_DATA
from kubevnfm_lcm_api.lifecycle.machines.requested_healing import KEEP, WITH_STORAGE
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.scripts.drivers import has_scripts

OWN: Final = frozenset(
    {
        *PARAMETERS,
        *AdditionalParams.model_fields,
        *(name for login in AdditionalParams.logins for name in login.every),
        *(common.DEF_FILES, common.CHART, common.ORDER_ARTIFACT, common.VALUES, common.COMPUTE_PROFILES),
        *(common.OUTPUTS, common.RELEASE_NAME, common.KUBERNETES_VERSION, common.REPAIR, common.REPLACE, common.ALL),
        *(common.CAPI, REGISTRY_VNF, LOAD_BALANCER, CHART_VALUES, VALUE_NAMES, FORCE, LEAVING, KEEP, WITH_STORAGE),
        *(common.USE_HELM, common.RELEASES, REPLICA_VALUES),
        "adopt",
        # Tacker's clients send it with a scaling that no person asks for; it changes nothing, there as here.
        "is_auto",
        SECRET_NAMES,
    }
)
"""The names in additionalParams that kubevnfm reads, for VNFs of any kind."""
_OF_CONNECTIONS: Final = frozenset({"id", *(str(each.alias) for each in VimConnectionInfo.model_fields.values())})
"""The attributes of an entry of vimConnectionInfo; v1 has its id among them."""


async def unread_in(on: RequestServices, draft: Draft, asked: Asked[SolType], flavour: Flavour | None) -> Sequence[str]:
    """Return a warning for each name in ``additionalParams`` and in ``extra`` of a VIM, and for each attribute, that nothing reads.

    Code of a package may read any of them: no warning for a package with scripts, or if the request names user data or a coordination script.
    ``flavour``: that after the operation; None: the package does not exist any more, so what it reads is not known.
    """
    parameters: Mapping[str, Any] = getattr(asked.request, "additional_params", None) or {}
    names_code = any(name == USER_DATA or name.startswith(COORDINATE) for name in parameters)
    if flavour is None or names_code or has_scripts(flavour) or getattr(draft, "user_data", None):
        return ()
    found: list[str] = []
    if not parameters.keys() <= OWN:
        known = OWN | await _in_base_hot(on, draft, flavour)
        found += unread(parameters, known, "additionalParams/", "neither kubevnfm nor the package reads an attribute")
    of_vims = unread_of_vims(getattr(asked.request, "vim_connection_info", {}), asked.original)
    of_links = (
        f"{place}: not used, since resources are managed in direct mode" for place in of_indirect_mode(asked.original)
    )
    return [*found, *of_vims, *of_links, *_unread_beside(asked.request)]


def unread_of_vims(connections: Mapping[str, VimConnectionInfo], original: Mapping[str, Any]) -> Sequence[str]:
    """Return a warning for each attribute of the entries, and of their ``extra``, that kubevnfm does not read.

    ``original``: the request as it was given.
    """
    return [
        *_unread_of_entries(original.get("vimConnectionInfo")),
        *(
            warning
            for key, entry in connections.items()
            for warning in unread_extra(entry.vim_type, entry.extra, f"vimConnectionInfo/{key}/extra/")
        ),
    ]


def _unread_of_entries(given: object) -> Iterator[str]:
    """Yield the warnings about the attributes of entries; ``given``: the map of v2, or the list of v1."""
    entries: dict[str, object] = {}
    if isinstance(given, Mapping):
        entries = {f"/{key}": entry for key, entry in given.items()}
    elif isinstance(given, list):
        entries = {f"[{index}]": entry for index, entry in enumerate(given)}
    for place, entry in entries.items():
        if isinstance(entry, Mapping):
            names = [name for name, value in entry.items() if value is not None and name != SECRET_NAMES]
            yield from unread(names, _OF_CONNECTIONS, f"vimConnectionInfo{place}/", "SOL003 has no attribute")


def _unread_beside(request: SolType) -> Iterator[str]:
    """Yield the warnings about attributes that other attributes of the request make useless."""
    match request:
        case TerminateVnfRequest(termination_type="FORCEFUL", graceful_termination_timeout=int()):
            yield "gracefulTerminationTimeout: not used, since the termination is FORCEFUL"
        case OperateVnfRequest(graceful_stop_timeout=int()) if request.stop_type != "GRACEFUL":
            yield "gracefulStopTimeout: not used, since the stop is FORCEFUL"
    for index, link in enumerate(getattr(request, "ext_virtual_links", ())):
        for number, port in enumerate(link.ext_link_ports or ()):
            if port.resource_handle.vim_level_resource_type not in (None, PORT):
                place = f"extVirtualLinks[{index}]/extLinkPorts[{number}]/resourceHandle/vimLevelResourceType"
                yield f"{place}: not used, since the port is shown as {PORT}"


async def _in_base_hot(on: RequestServices, draft: Draft, flavour: Flavour) -> frozenset[str]:
    package = getattr(draft, "package", None)
    hot = await on.packages.base_hot(package.package_id, flavour.flavour_id) if package is not None else None
    return hot.top.parameters if hot is not None else frozenset()
