"""Warns about what a request has and nothing reads: in its free containers (api.md 3.3), and beside other attributes (attributes.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

from kubevnfm_cluster.parameters import CLUSTER
from kubevnfm_cluster.registry_vnf import REGISTRY_VNF
from kubevnfm_cluster.request import LOAD_BALANCER, AdditionalParams
from kubevnfm_cluster.unread import unread_parameters, unread_registry
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import VimConnection
from kubevnfm_kit.request_warnings import RequestWarning, place, pointer
from kubevnfm_secrets import SECRET_NAMES
from kubevnfm_sol.access import unread_extra
from kubevnfm_sol.base import SolType
from kubevnfm_sol.connectivity import of_indirect_mode
from kubevnfm_sol.free_containers import Container, misspelled, unread
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    HealVnfRequest,
    OperateVnfRequest,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
    TerminateVnfRequest,
)
from kubevnfm_sol.vim import OPENSTACK, VimConnectionInfo

from kubevnfm_lcm_api.http.spelling import PARAMETERS
from kubevnfm_lcm_api.lifecycle.containers.chart_values import misspelled_values
from kubevnfm_lcm_api.lifecycle.containers.charts import VALUE_NAMES
from kubevnfm_lcm_api.lifecycle.containers.charts import VALUES as CHART_VALUES
from kubevnfm_lcm_api.lifecycle.containers.helm_releases import REPLICA_VALUES
from kubevnfm_lcm_api.lifecycle.containers.repair import FORCE
from kubevnfm_lcm_api.lifecycle.containers.requested_replacement import COORDINATE
from kubevnfm_lcm_api.lifecycle.containers.scaling import LEAVING
from kubevnfm_lcm_api.lifecycle.core import request_parameters as common
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.server_notifier import URI as NOTIFIER
from kubevnfm_lcm_api.lifecycle.machines.drivers import cluster_phases, is_registry
from kubevnfm_lcm_api.lifecycle.machines.inventory import PORT
from kubevnfm_lcm_api.lifecycle.machines.package_fit import USER_DATA, USER_DATA_CLASS
from kubevnfm_lcm_api.lifecycle.machines.requested_healing import KEEP, WITH_STORAGE
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.scripts.drivers import has_scripts

_OF_CONTAINERS: Final = frozenset({
    common.DEF_FILES, common.CHART, common.ORDER_ARTIFACT, common.VALUES, common.COMPUTE_PROFILES, common.OUTPUTS,
    common.RELEASE_NAME, common.KUBERNETES_VERSION, common.CAPI, common.USE_HELM, common.RELEASES, REPLICA_VALUES,
    LOAD_BALANCER, CHART_VALUES, VALUE_NAMES, FORCE, "adopt", "namespace", "multi_namespace", "vdu_mapping", "wait_timeout",
})  # fmt: skip
"""Those that are read for VNFs on Kubernetes alone."""
_OF_MACHINES: Final = frozenset({
    CLUSTER, REGISTRY_VNF, "nfv", USER_DATA, USER_DATA_CLASS, KEEP, WITH_STORAGE, NOTIFIER,
})  # fmt: skip
"""Those that are read for VNFs of machines alone."""
_OF_TASKS: Final[Mapping[str, tuple[type[SolType], ...]]] = {
    **dict.fromkeys((common.ALL, common.REPAIR, KEEP, WITH_STORAGE), (HealVnfRequest,)),
    **dict.fromkeys(("is_reverse", LEAVING), (ScaleVnfRequest, ScaleVnfToLevelRequest)),
    **dict.fromkeys((common.REPLACE, "upgrade_type", "vdu_params"), (ChangeCurrentVnfPkgRequest,)),
}
"""Those that are read in requests of these types alone."""
OWN: Final = frozenset(
    {
        *PARAMETERS,
        *AdditionalParams.model_fields,
        *(name for login in AdditionalParams.logins for name in login.every),
        *_OF_CONTAINERS,
        # Nothing reads nfv unless the Base HOT has it as a parameter.
        *(_OF_MACHINES - {"nfv"}),
        *_OF_TASKS,
        # Tacker's clients send it with a scaling that no person asks for; it changes nothing, there as here.
        "is_auto",
        SECRET_NAMES,
    }
)
"""The names in additionalParams that kubevnfm reads, for VNFs of any kind."""
_TASKS: Final[Mapping[type[SolType], str]] = {
    HealVnfRequest: "heal", ScaleVnfRequest: "scale", ScaleVnfToLevelRequest: "scale_to_level",
    ChangeCurrentVnfPkgRequest: "change_vnfpkg",
}  # fmt: skip
_OF_CONNECTIONS: Final = frozenset({"id", *(str(each.alias) for each in VimConnectionInfo.model_fields.values())})
"""The attributes of an entry of vimConnectionInfo; v1 has its id among them."""
_PARAMETERS: Final = "additionalParams"
_VIMS: Final = "vimConnectionInfo"
_MOST: Final = 20
_MOST_OF_ALL: Final = 100
"""Warnings about one request: they are stored with its operation, and a request may have thousands of VIMs or links."""


async def unread_in(
    on: RequestServices, draft: Draft, asked: Asked[SolType], flavour: Flavour | None
) -> Sequence[RequestWarning]:
    """Return a warning for each name in ``additionalParams`` and in ``extra`` of a VIM, and for each attribute, that nothing reads.

    Code of a package may read any name in the free containers: no warning about these for a package with scripts, or if the request
    names user data or a coordination script, except for attributes of a cluster that are misspelled.
    ``flavour``: that after the operation; None: the package does not exist any more, so what it reads is not known.
    """
    parameters: Mapping[str, Any] = getattr(asked.request, "additional_params", None) or {}
    if flavour is None:
        return ()
    names_code = any(name == USER_DATA or name.startswith(COORDINATE) for name in parameters)
    is_for_code = names_code or has_scripts(flavour) or bool(getattr(draft, "user_data", None))
    found: list[RequestWarning] = []
    if not is_for_code:
        found += await _unread_parameters(on, draft, asked.request, parameters, flavour)
    found += _unread_of_cluster(parameters, flavour, is_for_code=is_for_code)
    if not is_for_code:
        found += await misspelled_values(on.packages, getattr(draft, "package", None), parameters)
    vims = getattr(asked.request, "vim_connection_info", {})
    found += unread_of_vims({} if is_for_code else vims, asked.original)
    of_links = (_unused(path, "resources are managed in direct mode") for path in of_indirect_mode(asked.original))
    return list(islice(chain(found, of_links, _unread_beside(asked.request)), _MOST_OF_ALL))


async def _unread_parameters(
    on: RequestServices, draft: Draft, request: SolType, parameters: Mapping[str, Any], flavour: Flavour
) -> Sequence[RequestWarning]:
    """Return the warnings about names in ``additionalParams``."""
    of_package = await _in_base_hot(on, draft, flavour) if parameters else frozenset[str]()
    found = list(_of_others(parameters.keys() - of_package, draft, request))
    if not parameters.keys() <= OWN:
        known = OWN | of_package
        found += unread(parameters, known, [_PARAMETERS], "neither kubevnfm nor the package reads an attribute")
    return found


def _of_others(names: Collection[str], draft: Draft, request: SolType) -> Iterator[RequestWarning]:
    """Yield the warnings about names that are read for another kind of VNF, or for another task."""
    vim: VimConnection | None = getattr(draft, "vim", None)
    others = frozenset[str]() if vim is None else _OF_CONTAINERS if vim.vim_type == OPENSTACK else _OF_MACHINES
    where = "on Kubernetes" if others is _OF_CONTAINERS else "of machines"
    for name in sorted(names):
        tasks = _OF_TASKS.get(name)
        if name in others:
            yield _unused([_PARAMETERS, name], f"kubevnfm reads it for VNFs {where} alone")
        elif tasks is not None and not isinstance(request, tasks):
            yield _unused(
                [_PARAMETERS, name], f"kubevnfm reads it for {' and '.join(_TASKS[one] for one in tasks)} alone"
            )


def _unread_of_cluster(
    parameters: Mapping[str, Any], flavour: Flavour, *, is_for_code: bool
) -> Sequence[RequestWarning]:
    """Return the warnings about attributes of a cluster that the driver is to build, which are not read."""
    if is_registry(flavour):
        objects = unread_registry(parameters)
    elif cluster_phases(flavour):
        objects = unread_parameters(parameters)
    else:
        return ()
    readers = "kubevnfm reads no attribute"
    containers = (Container((_PARAMETERS, *path), names, known) for path, names, known in objects)
    if is_for_code:
        return misspelled(containers, readers)
    found = (each for one in containers for each in unread(one.names, one.known, one.path, readers))
    return list(islice(found, _MOST))


def unread_of_vims(
    connections: Mapping[str, VimConnectionInfo], original: Mapping[str, Any]
) -> Sequence[RequestWarning]:
    """Return a warning for each attribute of the entries, and of their ``extra``, that kubevnfm does not read.

    ``connections``: those whose ``extra`` is examined; ``original``: the request as it was given.
    """
    entries = dict(_entries(original.get(_VIMS)))
    of_extra = (
        warning
        for key, entry in connections.items()
        for warning in unread_extra(entry.vim_type, entry.extra, [*entries.get(key, ((_VIMS, key), None))[0], "extra"])
    )
    return list(islice(chain(_unread_of_entries(entries.values()), of_extra), _MOST_OF_ALL))


def _entries(given: object) -> Iterator[tuple[str, tuple[Sequence[str | int], object]]]:
    """Yield path and value of each entry by its key; ``given``: the map of v2, or the list of v1."""
    if isinstance(given, Mapping):
        yield from ((key, ((_VIMS, key), entry)) for key, entry in given.items())
    elif isinstance(given, list):
        for index, entry in enumerate(given):
            key = entry.get("id") if isinstance(entry, Mapping) else None
            yield (key if isinstance(key, str) else f"[{index}]"), ((_VIMS, index), entry)


def _unread_of_entries(entries: Iterable[tuple[Sequence[str | int], object]]) -> Iterator[RequestWarning]:
    for path, entry in entries:
        if isinstance(entry, Mapping):
            names = [name for name, value in entry.items() if value is not None and name != SECRET_NAMES]
            yield from unread(names, _OF_CONNECTIONS, path, "SOL003 has no attribute")


def _unread_beside(request: SolType) -> Iterator[RequestWarning]:
    """Yield the warnings about attributes that other attributes of the request make useless."""
    match request:
        case TerminateVnfRequest(termination_type="FORCEFUL", graceful_termination_timeout=int()):
            yield _unused(["gracefulTerminationTimeout"], "the termination is FORCEFUL")
        case OperateVnfRequest(graceful_stop_timeout=int()) if request.stop_type != "GRACEFUL":
            yield _unused(["gracefulStopTimeout"], "the stop is FORCEFUL")
    for index, link in enumerate(getattr(request, "ext_virtual_links", ())):
        for number, port in enumerate(link.ext_link_ports or ()):
            if port.resource_handle.vim_level_resource_type not in (None, PORT):
                handle = ("extVirtualLinks", index, "extLinkPorts", number, "resourceHandle")
                yield _unused([*handle, "vimLevelResourceType"], f"the port is shown as {PORT}")


def _unused(path: Sequence[str | int], reason: str) -> RequestWarning:
    return RequestWarning(text=f"{place(path)}: not used, since {reason}", field=pointer(path))


async def _in_base_hot(on: RequestServices, draft: Draft, flavour: Flavour) -> frozenset[str]:
    package = getattr(draft, "package", None)
    hot = await on.packages.base_hot(package.package_id, flavour.flavour_id) if package is not None else None
    return hot.top.parameters if hot is not None else frozenset()
