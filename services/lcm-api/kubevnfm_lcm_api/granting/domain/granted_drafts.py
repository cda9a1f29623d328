"""Applies a grant to the draft of its operation (api.md 3.4: grant entries override those with the same key). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

from kubevnfm_cluster.parameters import CLUSTER, ClusterParameters
from kubevnfm_cluster.request import read_cluster_parameters
from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_sol.access import check_login, check_understood
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.vim import VimConnectionInfo, long_vim_type

from kubevnfm_lcm_api.lifecycle.containers.changing import ChangeCnfDraft
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.granting import GrantUnusable, merged
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft, TerminateDraft
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft, OperateVmDraft, ReplaceVmDraft
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft

Json = dict[str, Any]


@singledispatch
def granted(draft: Draft, grant: Grant, request: Mapping[str, Any]) -> Draft:
    """Return the draft with the grant applied; ``request``: the GrantRequest. Raises GrantUnusable."""
    return draft


@granted.register
def _instantiate(draft: InstantiateDraft, grant: Grant, request: Mapping[str, Any]) -> Draft:
    given = _connections(grant, draft.vim_connections.get(draft.vim_key))
    connections = {**draft.vim_connections, **given}
    # A plan builds on one VIM, so the first resource decides for all.
    named = [one.vim_connection_id for one in grant.add_resources or () if one.vim_connection_id in connections]
    key = named[0] if named and named[0] is not None else draft.vim_key
    changes: Json = {
        "vim_connections": connections,
        "vim_key": key,
        "vim": _vim(connections[key], draft.vim, key) if key in given or key != draft.vim_key else draft.vim,
        "parameters": {**draft.parameters, **(grant.additional_params or {})},
        "ext_virtual_links": tuple(_external(draft.ext_virtual_links, _document(grant).get("extVirtualLinks", ()))),
    }
    if isinstance(draft, InstantiateVmDraft) or draft.scripts:
        changes |= {"grant": _document(grant), "grant_request": dict(request)}
    is_cluster = isinstance(draft, InstantiateVmDraft) and draft.cluster_parameters is not None
    if is_cluster and CLUSTER in (grant.additional_params or {}):
        changes["cluster_parameters"] = _cluster(grant)
    return draft.model_copy(update=changes)


@granted.register
def _change(draft: ChangeVmDraft, grant: Grant, request: Mapping[str, Any]) -> Draft:
    body = _document(grant)
    connections = {
        **draft.connections,
        "extVirtualLinks": _external(draft.connections.get("extVirtualLinks") or (), body.get("extVirtualLinks", ())),
        "extManagedVirtualLinks": merged(
            draft.connections.get("extManagedVirtualLinks") or (),
            body.get("extManagedVirtualLinks", ()),
            "vnfVirtualLinkDescId",
        ),
    }
    # Without links in the grant the present ones stay as they are, absent attributes included.
    has_links = "extVirtualLinks" in body or "extManagedVirtualLinks" in body
    changes: Json = {"grant": body, **({"connections": connections} if has_links else {})}
    before = draft.vim_connections or {
        key: VimConnectionInfo.model_validate(one)
        for key, one in (draft.instance.get("vimConnectionInfo") or {}).items()
    }
    given = _connections(grant, before.get(draft.vim_key))
    if given:
        changes["vim_connections"] = {**before, **given}
    if draft.vim_key in given:
        changes["vim"] = _vim(given[draft.vim_key], draft.vim, draft.vim_key)
    if isinstance(draft, ReplaceVmDraft):
        changes["parameters"] = {**draft.parameters, **(grant.additional_params or {})}
    return draft.model_copy(update=changes)


@granted.register(TerminateDraft)
@granted.register(OperateVmDraft)
@granted.register(ChangeCnfDraft)
def _access(draft: TerminateDraft | OperateVmDraft | ChangeCnfDraft, grant: Grant, request: Mapping[str, Any]) -> Draft:
    given = _connections(grant, None)
    changes: Json = {}
    if isinstance(draft, ScriptedDraft) and draft.scripts:
        changes["grant"] = _document(grant)
    if draft.vim_key in given:
        changes["vim"] = _vim(given[draft.vim_key], draft.vim, draft.vim_key)
    return draft.model_copy(update=changes)


def _cluster(grant: Grant) -> ClusterParameters:
    """Return the cluster parameters that replace those of the request."""
    try:
        return read_cluster_parameters(grant.additional_params or {})
    except InvalidInput as error:
        raise GrantUnusable(error.field, error.reason) from error


def _document(grant: Grant) -> Json:
    return grant.model_dump(by_alias=True, exclude_none=True)


def _connections(grant: Grant, present: VimConnectionInfo | None) -> dict[str, VimConnectionInfo]:
    """Return the grant's entries; one that names no VIM means ``present``, the entry of the operation's VIM."""
    found: dict[str, VimConnectionInfo] = {}
    for key, one in (grant.vim_connection_info or {}).items():
        # The form of Tacker's v1, which never reads the access data beside a `tenant` (api.md 3.2).
        if one.vim_id is None and "tenant" in one.access_info:
            if present is not None:
                found[key] = present
            continue
        found[key] = one.model_copy(update={"vim_type": long_vim_type(one.vim_type)})
    return found


def _vim(connection: VimConnectionInfo, before: VimConnection, key: str) -> VimConnection:
    """Return the access data of the granted VIM. Raises GrantUnusable for another type: the plan's steps need this one."""
    if connection.vim_type != long_vim_type(before.vim_type):
        raise GrantUnusable(f"vimConnectionInfo/{key}/vimType", f"{before.vim_type} expected")
    if not connection.access_info and connection.vim_id is None:
        raise GrantUnusable(f"vimConnectionInfo/{key}", "vimId or accessInfo expected")
    granted = VimConnection(**vars(connection))
    try:
        check_understood(connection, f"vimConnectionInfo/{key}")
        if not granted.is_reference:
            check_login(connection, f"vimConnectionInfo/{key}")
    except InvalidInput as error:
        raise GrantUnusable(error.field, error.reason) from error
    return granted


def _external(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the merged external links. A connection point that the grant names is on the grant's link only."""
    moved = {cp.get("cpdId") for link in new for cp in link.get("extCps") or ()}
    left = [{**link, "extCps": [cp for cp in link.get("extCps") or () if cp.get("cpdId") not in moved]} for link in old]
    return merged([link for link in left if link["extCps"]], new, "id")
