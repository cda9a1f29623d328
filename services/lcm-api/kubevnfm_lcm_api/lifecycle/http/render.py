"""One internal model, two renderers: the v2 form is the model itself, the v1 form is made from it by a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from kubevnfm_events import ApiVersion
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_pointer import escaped
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import hide, mask, opened
from kubevnfm_sol.lcm import OperationState, OperationType
from kubevnfm_sol.vim import long_vim_type, short_vim_type

from kubevnfm_lcm_api.http.secret_free import without_secret_leaves
from kubevnfm_lcm_api.lifecycle.core.states import allowed_tasks

_LINK_BY_TASK: Final = {
    "terminate": "terminate",
    "scale": "scale",
    "scale_to_level": "scaleToLevel",
    "change_flavour": "changeFlavour",
    "heal": "heal",
    "operate": "operate",
    "change_ext_conn": "changeExtConn",
    "change_vnfpkg": "changeCurrentVnfPkg",
    "create_snapshot": "createSnapshot",
    "revert_to_snapshot": "revertToSnapshot",
}
_V2_ONLY_TASKS: Final = frozenset({"change_vnfpkg", "create_snapshot", "revert_to_snapshot"})
_OURS: Final = ("internal", "createdAt", "updatedAt")
_V2_ONLY_INFO: Final = ("maxScaleLevels", "vipCpInfo", "metadata")


def base_url(version: ApiVersion, root: str) -> str:
    """Return the API's prefix under the public root."""
    return f"{root}/vnflcm/{version}"


def instance_view(document: JsonMapping, version: ApiVersion, root: str) -> JsonObject:
    """Return VnfInstance as the API version shows it, links by its state (api.md 3.1)."""
    body: JsonObject = {name: value for name, value in document.items() if name not in _OURS}
    stored_info = body.get("instantiatedVnfInfo")
    if stored_info is not None:
        body["instantiatedVnfInfo"] = {name: value for name, value in stored_info.items() if name != "additionalParams"}
    body = without_secret_leaves(body)
    if version == "v1" and stored_info is not None and stored_info.get("additionalParams"):
        body["instantiatedVnfInfo"]["additionalParams"] = mask(hide(opened(stored_info["additionalParams"])))
    for name in ("vimConnectionInfo", "vnfConfigurableProperties", "metadata", "extensions"):
        if not body.get(name):
            body.pop(name, None)
    me = f"{base_url(version, root)}/vnf_instances/{body['id']}"
    tasks = document.get("internal", {}).get("tasks") or ()
    body["_links"] = instance_links(body["instantiationState"], me, tasks, version)
    if version == "v1":
        return _instance_v1(body)
    del body["vnfPkgId"]
    return body


def instance_links(state: str, me: str, tasks: Collection[str], version: ApiVersion) -> JsonObject:
    """Return the links that the state allows and the VNFD supports (api.md 3.1.3)."""
    links: JsonObject = {"self": {"href": me}}
    if state != "INSTANTIATED":
        return {**links, "instantiate": {"href": f"{me}/instantiate"}}
    offered = {"terminate", *tasks} - (_V2_ONLY_TASKS if version == "v1" else frozenset())
    links.update({name: {"href": f"{me}/{task}"} for task, name in _LINK_BY_TASK.items() if task in offered})
    return links


def _instance_v1(body: JsonObject) -> JsonObject:
    """Return the v1 form (api.md chapter 10)."""
    body.setdefault("vnfInstanceName", f"vnf-{body['id']}")
    if "vimConnectionInfo" in body:
        body["vimConnectionInfo"] = vim_list(body["vimConnectionInfo"])
    info = body.get("instantiatedVnfInfo")
    if info is not None:
        for name in _V2_ONLY_INFO:
            info.pop(name, None)
        if "vnfVirtualLinkResourceInfo" in info:
            info["virtualLinkResourceInfo"] = info["vnfVirtualLinkResourceInfo"]
        for cp in info.get("extCpInfo", ()):
            cp.pop("cpConfigId", None)
        for link in info.get("extVirtualLinkInfo", ()):
            link.pop("currentVnfExtCpData", None)
    return body


def vim_list(connections: Mapping[str, JsonObject]) -> list[JsonObject]:
    """Return vimConnectionInfo as v1's list; the key becomes ``id``, the type its short name."""
    return [{"id": key, **value, "vimType": short_vim_type(value["vimType"])} for key, value in connections.items()]


def occurrence_view(document: JsonMapping, version: ApiVersion, root: str) -> JsonObject:
    """Return VnfLcmOpOcc as the API version shows it; links only to what is possible now (api.md 3.5)."""
    body = without_secret_leaves({name: value for name, value in document.items() if name not in _OURS})
    body.setdefault("operationParams", {})
    base = base_url(version, root)
    me = f"{base}/vnf_lcm_op_occs/{body['id']}"
    tasks = allowed_tasks(
        OperationState(body["operationState"]),
        OperationType(body["operation"]),
        is_reversible=document.get("internal", {}).get("hasWayBack", True),
        cancel_mode=body.get("cancelMode"),
    )
    grant = document.get("internal", {}).get("granting", {}).get("link")
    snapshot_id = body.get("vnfSnapshotInfoId")
    body["_links"] = {
        "self": {"href": me},
        "vnfInstance": {"href": f"{base}/vnf_instances/{body['vnfInstanceId']}"},
        **({"grant": {"href": grant}} if grant is not None else {}),
        **({"vnfSnapshot": {"href": snapshot_url(snapshot_id, root)}} if snapshot_id and version == "v2" else {}),
        **{task: {"href": f"{me}/{task}"} for task in ("cancel", "retry", "rollback", "fail") if task in tasks},
    }
    if body["operationState"] in {"STARTING", "COMPLETED"}:
        body.pop("error", None)
    return _occurrence_v1(body) if version == "v1" else body


def snapshot_url(snapshot_info_id: str, root: str) -> str:
    """Return where an individual VNF snapshot is shown; version 2 of the API alone has them."""
    return f"{base_url('v2', root)}/vnf_snapshots/{snapshot_info_id}"


def snapshot_view(document: JsonMapping, root: str) -> JsonObject:
    """Return VnfSnapshotInfo, with a link to its VNF if it was taken here."""
    body = without_secret_leaves({name: value for name, value in document.items() if name not in _OURS})
    body["_links"] = {"self": {"href": snapshot_url(body["id"], root)}}
    if document.get("internal", {}).get("createdBy") is not None and "vnfSnapshot" in body:
        snapshot = body["vnfSnapshot"]
        taken_from = {"href": f"{base_url('v2', root)}/vnf_instances/{snapshot['vnfInstanceId']}"}
        body["_links"]["takenFrom"] = taken_from
        if "vnfInstance" in snapshot:
            # A copy: its tasks are those of the instance, which may have changed since.
            snapshot["vnfInstance"] = {**snapshot["vnfInstance"], "_links": {"self": taken_from}}
    return body


def _occurrence_v1(body: JsonObject) -> JsonObject:
    """Return the v1 form (api.md chapter 10)."""
    body.pop("modificationsTriggeredByVnfPkgChange", None)
    body.pop("warnings", None)
    body.pop("vnfSnapshotInfoId", None)
    changes = body.get("resourceChanges", {})
    changes.pop("affectedExtLinkPorts", None)
    for link in changes.get("affectedVirtualLinks", ()):
        link["virtualLinkDescId"] = link["vnfVirtualLinkDescId"]
    if "changedInfo" in body:
        body["changedInfo"] = changed_info_v1(body["changedInfo"])
    for link in body.get("changedExtConnectivity", ()):
        link.pop("currentVnfExtCpData", None)
    return body


def changed_info_v1(info: JsonMapping) -> JsonObject:
    """Return VnfInfoModifications as v1 has it: vimConnectionInfo is a list."""
    if "vimConnectionInfo" not in info:
        return dict(info)
    return {**info, "vimConnectionInfo": vim_list(info["vimConnectionInfo"])}


def request_in_v2_form(document: Any, version: ApiVersion) -> Any:
    """Return a request with its lists as maps and VIM types by their long names; what is no object as it is."""
    if not isinstance(document, Mapping):
        return document
    body = _from_v1(document) if version == "v1" else dict(document)
    if isinstance(body.get("vimConnectionInfo"), dict):
        body["vimConnectionInfo"] = _long_types(body["vimConnectionInfo"])
    return body


def _from_v1(document: JsonMapping) -> JsonObject:
    body: JsonObject = dict(document)
    if body.get("vimConnectionInfo") is not None:
        body["vimConnectionInfo"] = _map_of(body["vimConnectionInfo"])
    links = body.get("extVirtualLinks")
    if isinstance(links, list):
        body["extVirtualLinks"] = [_link_from_v1(link, f"extVirtualLinks[{i}]") for i, link in enumerate(links)]
    return body


def _map_of(listed: Any) -> JsonObject:
    """Return v1's list of VimConnectionInfo as v2's map by id. Raises InvalidInput."""
    if not isinstance(listed, list):
        raise InvalidInput("vimConnectionInfo", "a list expected")
    by_id: JsonObject = {}
    for index, entry in enumerate(listed):
        place = f"vimConnectionInfo[{index}]"
        if not isinstance(entry, Mapping):
            raise InvalidInput(place, "an object expected")
        key = entry.get("id", str(index))
        if not isinstance(key, str) or key in by_id:
            raise InvalidInput(f"{place}/id", "a text expected, of its own for each entry")
        by_id[key] = {name: value for name, value in entry.items() if name != "id"}
    return by_id


def _link_from_v1(link: Any, place: str) -> Any:
    if not isinstance(link, Mapping):
        return link
    cps = link.get("extCps")
    if not isinstance(cps, list):
        return dict(link)
    return {**link, "extCps": [_cp_from_v1(cp, f"{place}/extCps[{i}]/cpConfig") for i, cp in enumerate(cps)]}


_CONFIG_IN_V1: Final = frozenset({"linkPortId", "cpProtocolData"})
"""The attributes of VnfExtCpConfig in both versions."""


def _cp_from_v1(cp: Any, place: str) -> Any:
    """Return v1's list of VnfExtCpConfig as v2's map by id. Raises InvalidInput."""
    if not isinstance(cp, Mapping) or cp.get("cpConfig") is None:
        return cp
    listed = cp["cpConfig"]
    if not isinstance(listed, list):
        raise InvalidInput(place, "a list expected")
    by_id: JsonObject = {}
    for index, config in enumerate(listed):
        if not isinstance(config, Mapping):
            raise InvalidInput(f"{place}[{index}]", "an object expected")
        key = config.get("cpInstanceId") or f"{cp.get('cpdId', 'cp')}-{index}"
        if not isinstance(key, str) or key in by_id:
            raise InvalidInput(f"{place}[{index}]/cpInstanceId", "a text expected, of its own for each entry")
        for name in config:
            if name not in _CONFIG_IN_V1 and name != "cpInstanceId":
                raise InvalidInput(f"{place}[{index}]/{escaped(name)}", "no such attribute in v1")
        by_id[key] = {name: value for name, value in config.items() if name in _CONFIG_IN_V1}
    return {**cp, "cpConfig": by_id}


def _long_types(connections: JsonMapping) -> JsonObject:
    """Return the map with every vimType in its ETSINFV spelling; input takes either (api.md 3.2)."""
    return {
        key: {**value, "vimType": long_vim_type(value["vimType"])}
        if isinstance(value, Mapping) and isinstance(value.get("vimType"), str)
        else value
        for key, value in connections.items()
    }
