"""How SOL types are read and written: camelCase on the wire, absent rather than null, secrets sealed."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from kubevnfm_secrets import MASK, KeyRing, Secret
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import CreateVnfRequest, OperationState, OperationType, VnfInstance, VnfLcmOpOcc
from kubevnfm_sol.packages import VnfPkgInfo, VnfPkgInfoModificationRequest
from kubevnfm_sol.problem import InvalidParam, ProblemDetails
from kubevnfm_sol.resources import (
    AffectedVnfc,
    InstantiatedVnfInfo,
    ResourceChanges,
    ResourceHandle,
    VnfcInfo,
    VnfcResourceInfo,
)
from kubevnfm_sol.vim import VimConnectionInfo
from pydantic import BaseModel, ValidationError

RING = KeyRing.from_text(KeyRing.new_key())
SERVER = ResourceHandle(vim_connection_id="vim1", resource_id="server-1", vim_level_resource_type="OS::Nova::Server")
INSTANCE = VnfInstance(
    id="i1",
    vnfd_id="d1",
    vnf_provider="company",
    vnf_product_name="sample",
    vnf_software_version="1.0",
    vnfd_version="2.0",
    vnf_pkg_id="p1",
    vim_connection_info={
        "vim1": VimConnectionInfo(vim_type="openstack", access_info={"user": "nfv", "password": Secret("pw")})
    },
    instantiated_vnf_info=InstantiatedVnfInfo(
        flavour_id="simple",
        vnfc_resource_info=(VnfcResourceInfo(id="c1", vdu_id="VDU1", compute_resource=SERVER),),
        vnfc_info=(VnfcInfo(id="VDU1-c1", vdu_id="VDU1", vnfc_configurable_properties={"token": Secret("t")}),),
        additional_params={"password": Secret("pw"), "count": 2},
    ),
)
OCCURRENCE = VnfLcmOpOcc(
    id="o1",
    operation_state=OperationState.FAILED_TEMP,
    state_entered_time="2026-01-01T00:00:01Z",
    start_time="2026-01-01T00:00:00Z",
    vnf_instance_id="i1",
    operation=OperationType.HEAL,
    operation_params={"cause": "x", "password": Secret("pw")},
    error=ProblemDetails(status=500, detail="broken"),
    resource_changes=ResourceChanges(
        affected_vnfcs=(AffectedVnfc(id="c1", vdu_id="VDU1", change_type="MODIFIED", compute_resource=SERVER),)
    ),
)
PACKAGE = VnfPkgInfo(id="p1", onboarding_state="CREATED", operational_state="DISABLED", usage_state="NOT_IN_USE")


@pytest.mark.parametrize("value", [INSTANCE, OCCURRENCE, PACKAGE], ids=lambda value: type(value).__name__)
def test_a_stored_document_reads_as_what_was_written(value: VnfInstance | VnfLcmOpOcc | VnfPkgInfo) -> None:
    document = json.loads(json.dumps(value.document(RING)))
    assert type(value).model_validate(document).document(RING) == document
    assert '"pw"' not in json.dumps(document)


def test_a_document_has_camel_case_names_and_no_nulls() -> None:
    document = INSTANCE.document(RING)
    assert document["vnfProductName"] == "sample"
    assert "vnfInstanceName" not in document
    resource = document["instantiatedVnfInfo"]["vnfcResourceInfo"][0]["computeResource"]
    assert resource == {"vimConnectionId": "vim1", "resourceId": "server-1", "vimLevelResourceType": "OS::Nova::Server"}


def test_plain_json_masks_secrets() -> None:
    text = INSTANCE.model_dump_json(by_alias=True)
    assert MASK in text
    assert '"pw"' not in text


def test_a_type_is_made_by_either_spelling_and_never_changed() -> None:
    assert ResourceHandle.model_validate({"resourceId": "r"}) == ResourceHandle(resource_id="r")
    with pytest.raises(ValidationError):
        SERVER.resource_id = "other"  # type: ignore[misc]  # frozen, which is what is tested


def test_unknown_attributes_are_ignored() -> None:
    given = {"resourceId": "r", "laterVersionsAttribute": 1}
    assert ResourceHandle.model_validate(given) == ResourceHandle(resource_id="r")


def test_null_in_a_request_is_as_if_absent() -> None:
    assert CreateVnfRequest.model_validate({"vnfdId": "d", "metadata": None, "vnfInstanceName": None}) == (
        CreateVnfRequest(vnfd_id="d")
    )
    with pytest.raises(ValidationError) as refused:
        CreateVnfRequest.model_validate({"vnfdId": None})
    assert [error["type"] for error in refused.value.errors()] == ["missing"]


def test_null_in_a_merge_patch_is_kept_apart_from_absent() -> None:
    patch = VnfPkgInfoModificationRequest.model_validate({"userDefinedData": None})
    assert patch.model_fields_set == {"user_defined_data"}


@pytest.mark.parametrize("kind", [CreateVnfRequest, VimConnectionInfo, ResourceHandle])
def test_an_error_never_quotes_what_was_given(kind: type[BaseModel]) -> None:
    with pytest.raises(ValidationError) as refused:
        kind.model_validate({name: ["swordfish"] for name in ("vnfdId", "vimType", "resourceId")})
    assert "swordfish" not in str(refused.value)


@pytest.mark.parametrize("missing", ["status", "detail"])
def test_problem_details_need_status_and_detail(missing: str) -> None:
    given = {"status": 404, "detail": "no such VNF instance"}
    with pytest.raises(ValidationError, match=missing):
        ProblemDetails.model_validate({name: value for name, value in given.items() if name != missing})


def test_problem_details_show_wrong_places_only_if_there_are_some() -> None:
    plain = ProblemDetails(status=404, detail="no such VNF instance")
    assert plain.document(RING) == {"type": "about:blank", "status": 404, "detail": "no such VNF instance"}
    places = (InvalidParam(name="vnfdId", reason="a text expected"),)
    document = plain.model_copy(update={"invalid_params": places}).document(RING)
    assert document["invalidParams"] == [{"name": "vnfdId", "reason": "a text expected"}]


def test_resource_changes_are_empty_until_one_list_has_an_entry() -> None:
    assert ResourceChanges().is_empty
    assert OCCURRENCE.resource_changes is not None
    assert not OCCURRENCE.resource_changes.is_empty


def test_a_type_that_many_threads_use_first_is_built_completely() -> None:
    """Types are built at their first use, which may be in several threads at once: pydantic before 2.14 failed then."""

    class Inner(SolType):
        some_name: str

    switches = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):

            class Outer(SolType):
                vnf_names: tuple[Inner, ...]
                more: dict[str, Inner] | None = None

            together = Barrier(8)

            def name(_: int, outer: Any = Outer, begin: Barrier = together) -> str:
                begin.wait()
                return str(outer.model_validate({"vnfNames": [{"someName": "a"}]}).vnf_names[0].some_name)

            with ThreadPoolExecutor(8) as threads:
                assert list(threads.map(name, range(8))) == ["a"] * 8
    finally:
        sys.setswitchinterval(switches)
