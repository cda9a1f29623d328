"""The rules of a heal of a cluster, and what it needs to know (sequences.md 5.1 to 5.3, 5.6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kubevnfm_cluster import Role, read_cluster_parameters
from kubevnfm_csar import BaseHot
from kubevnfm_events.mgmt import REGISTRY_DRIVERS
from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_lcm_api.lifecycle.clusters.kuryr import driver_of
from kubevnfm_lcm_api.lifecycle.clusters.nodes import has_nodes, storage_server
from kubevnfm_lcm_api.lifecycle.clusters.places import Places
from kubevnfm_lcm_api.lifecycle.clusters.requested_nodes import ClusterFields, changed_cluster, servers_of
from kubevnfm_lcm_api.lifecycle.core.drift import is_stack_missing
from kubevnfm_lcm_api.lifecycle.machines.under_change import VnfUnderChange

_FIELD: Final = "vnfcInstanceId"


class HealFields(ClusterFields, total=False):
    """The fields of `HealVmDraft` that a VNF of plain machines does not have."""

    is_whole: bool
    masters: tuple[str, ...]
    storage: str | None
    cluster_vim_id: str | None
    cluster_vim_name: str | None
    max_nodes: int | None
    has_old_nodes: bool


def healed_cluster(
    vnf: VnfUnderChange,
    chosen: Collection[str] | None,
    given: Mapping[str, Any],
    *,
    base_hot: BaseHot | None,
) -> HealFields:
    """Return the fields of a cluster that is healed, in part or as a whole; none for any other VNF.

    ``chosen``: Nova ids of the machines that the request names, None: it names none; ``given``: its additionalParams;
    ``base_hot``: that of its flavour.
    Raises: Unprocessable if the cluster would not survive the loss of the machines; InvalidInput, Unprocessable of
    `with_overrides`.
    """
    internals = vnf.record.internals
    driver = driver_of(internals.phases, "heal_end")
    if "instantiate_end" not in internals.phases and internals.cluster_vim_key is not None:
        return _scripted_cluster(vnf, chosen)
    if driver is None or driver in REGISTRY_DRIVERS or "instantiate_end" not in internals.phases:
        return {}
    present = read_cluster_parameters(internals.parameters)
    if chosen is None:
        places = Places(vnf.flavour, base_hot, internals.instantiation_level_id)
        roles: tuple[Role, ...] = ("master", "worker")
        name = internals.cluster_vim_key or present.vim_name or f"kubernetes_vim_{vnf.record.vnf.id}"
        return {
            **changed_cluster(vnf, driver, given),
            "is_whole": True,
            "masters": (),
            "storage": None,
            "cluster_vim_id": internals.cluster_vim_id,
            "cluster_vim_name": name,
            "has_old_nodes": not is_stack_missing(vnf.record) and has_nodes(vnf.resources, present),
            "max_nodes": sum(places.group(present.group(role), role, needed=None).most for role in roles),
        }
    masters = {server.server_id for server in servers_of(vnf, present, "master")}
    workers = {server.server_id for server in servers_of(vnf, present, "worker")}
    if masters and masters.issubset(chosen):
        which = "this is the only master" if len(masters) == 1 else f"these are all {len(masters)} masters"
        raise Unprocessable(
            _FIELD, f"HEAL-1M: {which}, and the cluster is lost with it: heal the whole cluster, without vnfcInstanceId"
        )
    of_storage = present.storage_server
    storage = None if of_storage is None else storage_server(vnf.resources, of_storage).server_id
    if not {*masters, *workers, storage}.issuperset(chosen):
        raise Unprocessable(
            _FIELD, "a machine that is neither master, worker nor storage server is named: it cannot be healed"
        )
    return {
        **changed_cluster(vnf, driver, given),
        "is_whole": False,
        "masters": tuple(server for server in chosen if server in masters),
        "storage": storage if storage in chosen else None,
        "cluster_vim_id": None,
        "cluster_vim_name": None,
        "max_nodes": None,
        "has_old_nodes": False,
    }


def _scripted_cluster(vnf: VnfUnderChange, chosen: Collection[str] | None) -> HealFields:
    """Return the fields of a cluster that scripts of the package have built, if they build it again on other machines.

    Nothing is known of its nodes, so only a heal of the whole VNF gives it other access data (sequences.md 6.7).
    """
    internals = vnf.record.internals
    if chosen is not None and not set(chosen).issuperset(server.server_id for server in vnf.resources.servers):
        return {}
    fields: HealFields = {
        "is_whole": True,
        "cluster_vim_id": internals.cluster_vim_id,
        "cluster_vim_name": internals.cluster_vim_key,
    }
    try:
        return {
            **fields,
            "parameters": internals.parameters,
            "cluster_parameters": read_cluster_parameters(internals.parameters),
        }
    except (InvalidInput, Unprocessable):
        # Parameters of the scripts' own under the same name: they say nothing about the nodes.
        return fields
