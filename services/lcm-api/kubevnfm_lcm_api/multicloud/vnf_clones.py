"""``clone_of``: a VNF like another one, in a namespace of its own (multicloud.md MC-116)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_csar.manifest_values import merged
from kubevnfm_kit.errors import NotFound, Unprocessable
from kubevnfm_kit.ids import is_id
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_store.port import DocumentStore

from kubevnfm_lcm_api.lifecycle.core.request_parameters import (
    COMPUTE_PROFILES,
    KUBERNETES_VERSION,
    ORDER_ARTIFACT,
    OUTPUTS,
    RELEASE_NAME,
    VALUES,
)
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.multicloud.vnf_holds import shown_networks, shown_volumes
from kubevnfm_lcm_api.multicloud.vnf_views import Vnf, with_operation

_MEMBER: Final = "clone_of"
_NAMESPACE: Final = "namespace"
_FIXED: Final = frozenset({"ip_address", "mac_address"})
"""The members of an interface that no other one can have."""
_PARAMETERS: Final = (ORDER_ARTIFACT, COMPUTE_PROFILES, OUTPUTS, RELEASE_NAME, KUBERNETES_VERSION)
_NOT_BESIDE: Final = ("regions", "oof_parameters")


async def completed(on: RequestServices, store: DocumentStore, body: Any) -> Any:
    """Return a request with what it takes from the VNF that it names; one that names none as it is.

    Raises Unprocessable for a VNF that cannot be cloned, and for a namespace that is not the clone's own.
    """
    if not isinstance(body, Mapping) or body.get(_MEMBER) is None:
        return body
    given = {name: value for name, value in body.items() if value is not None}
    for name in _NOT_BESIDE:
        if name in given:
            raise Unprocessable(_MEMBER, f"not expected beside {name}: leave one of them out")
    source = await _source(on, store, given[_MEMBER])
    copied = _members_of(source)
    if "artifacts" in given or given.get("csar_id") not in (None, copied["csar_id"]):
        # Another package may have its order at another path, and no chart.
        for name in (ORDER_ARTIFACT, KUBERNETES_VERSION):
            copied.pop(name, None)
    if "artifacts" in given:
        copied.pop("csar_id")
    values = given.get(VALUES)
    _check_namespace(source, given)
    if isinstance(values, Mapping):
        given[VALUES] = merged(copied[VALUES], values)
    return {**copied, **given}


async def _source(on: RequestServices, store: DocumentStore, source_id: object) -> Vnf:
    if not isinstance(source_id, str) or not is_id(source_id):
        raise Unprocessable(_MEMBER, "the id of a VNF expected")
    try:
        vnf = await with_operation(store, await on.instances.get(source_id))
    except NotFound as error:
        raise Unprocessable(_MEMBER, str(error)) from error
    if vnf.record.internals.multicloud is None:
        raise Unprocessable(_MEMBER, f"VNF instance {source_id} was not made by this API")
    is_up = vnf.record.vnf.instantiation_state is InstantiationState.INSTANTIATED
    if not is_up or vnf.status == "DELETING":
        raise Unprocessable(_MEMBER, f"VNF instance {source_id} is {vnf.status}: one that is up expected")
    return vnf


def _members_of(source: Vnf) -> dict[str, Any]:
    """Return the members of a request that would bring up the same VNF, without its namespace and fixed addresses."""
    record, internals = source.record, source.record.internals
    assert internals.multicloud is not None
    parameters = internals.parameters
    networks = [each.model_dump(mode="json", exclude_none=True) for each in shown_networks(internals.networks)]
    found = {
        "cloud_region_id": internals.multicloud.cloud_region_id,
        "csar_id": record.vnf.vnf_pkg_id,
        "vnf_instance_name": record.vnf.vnf_instance_name,
        "vnf_instance_description": record.vnf.vnf_instance_description,
        VALUES: {name: value for name, value in parameters.get(VALUES, {}).items() if name != _NAMESPACE},
        "networks": [{name: value for name, value in each.items() if name not in _FIXED} for each in networks],
        "volumes": [each.model_dump(mode="json") for each in shown_volumes(internals.volumes)],
        **{name: parameters.get(name) for name in _PARAMETERS},
    }
    return {name: value for name, value in found.items() if value is not None}


def _check_namespace(source: Vnf, given: Mapping[str, Any]) -> None:
    place = source.record.internals.multicloud
    assert place is not None
    values = given.get(VALUES)
    among_values = values.get(_NAMESPACE) if isinstance(values, Mapping) else None
    namespace = given.get(_NAMESPACE, among_values)
    region = given.get("cloud_region_id")
    is_there = region in (None, place.cloud_region_id, place.key[1])
    if namespace is None or (is_there and namespace == place.namespace):
        raise Unprocessable(
            _NAMESPACE, f"a namespace of its own expected, not {place.namespace} of the VNF that is cloned"
        )
