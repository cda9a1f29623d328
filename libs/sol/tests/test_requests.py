"""The request types' rules beyond the types of their attributes."""

from __future__ import annotations

import pytest
from kubevnfm_kit.ids import new_id
from kubevnfm_sol.connectivity import ExtVirtualLinkData, VnfExtCpConfig
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.lcm import (
    ChangeExtVnfConnectivityRequest,
    CreateVnfRequest,
    InstantiateVnfRequest,
    OperateVnfRequest,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
    TerminateVnfRequest,
    VnfInfoModificationRequest,
)
from kubevnfm_sol.vim import KUBERNETES, OPENSTACK, long_vim_type, short_vim_type
from pydantic import BaseModel, ValidationError

REFUSED: list[tuple[type[BaseModel], dict[str, object], str]] = [
    (CreateVnfRequest, {"vnfdId": ""}, "vnfdId"),
    (CreateVnfRequest, {"vnfdId": "d" * 256}, "vnfdId"),
    (InstantiateVnfRequest, {}, "flavourId"),
    (TerminateVnfRequest, {"terminationType": "SOFT"}, "terminationType"),
    (TerminateVnfRequest, {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": -1}, "gracefulTermination"),
    (TerminateVnfRequest, {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 86_401}, "gracefulTermination"),
    (ScaleVnfRequest, {"type": "SCALE_OUT", "aspectId": "a", "numberOfSteps": 0}, "numberOfSteps"),
    (ScaleVnfToLevelRequest, {}, "exactly one"),
    (ScaleVnfToLevelRequest, {"scaleInfo": []}, "exactly one"),
    (
        ScaleVnfToLevelRequest,
        {"scaleInfo": [{"aspectId": "a", "scaleLevel": 1}], "instantiationLevelId": "l"},
        "exactly",
    ),
    (ScaleVnfToLevelRequest, {"scaleInfo": [{"aspectId": "a", "scaleLevel": -1}]}, "scaleLevel"),
    (OperateVnfRequest, {"changeStateTo": "STARTED", "stopType": "FORCEFUL"}, "STOPPED only"),
    (OperateVnfRequest, {"changeStateTo": "STARTED", "gracefulStopTimeout": 1}, "STOPPED only"),
    (ChangeExtVnfConnectivityRequest, {"extVirtualLinks": []}, "extVirtualLinks"),
    (VnfExtCpConfig, {"parentCpConfigId": "p"}, "linkPortId or cpProtocolData"),
    (VnfInfoModificationRequest, {"vnfdId": ""}, "vnfdId"),
    (Grant, {"id": "", "vnfInstanceId": "i", "vnfLcmOpOccId": "o"}, "id"),
]


@pytest.mark.parametrize(("kind", "given", "text"), REFUSED)
def test_a_wrong_request_is_refused_at_its_place(kind: type[BaseModel], given: dict[str, object], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        kind.model_validate(given)


def test_a_number_of_steps_may_be_a_text_of_digits() -> None:
    request = ScaleVnfRequest.model_validate({"type": "SCALE_IN", "aspectId": "a", "numberOfSteps": "2"})
    assert request.number_of_steps == 2


@pytest.mark.parametrize("name", ["scaleLevel", "scaleToLevel"])
def test_a_target_level_has_two_names(name: str) -> None:
    request = ScaleVnfToLevelRequest.model_validate({"scaleInfo": [{"aspectId": "a", name: 3}]})
    assert request.scale_info is not None
    assert request.scale_info[0].scale_level == 3


@pytest.mark.parametrize(
    "config",
    [
        {"linkPortId": "p"},
        {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]},
        {"netAttDefResourceId": "n"},
        {"netAttDefResourceId": ["n"]},
    ],
)
def test_each_way_of_connecting_a_port_is_accepted(config: dict[str, object]) -> None:
    link = {"id": "l", "resourceId": "net", "extCps": [{"cpdId": "CP1", "cpConfig": {"c": config, "gone": None}}]}
    read = ExtVirtualLinkData.model_validate(link)
    assert set(read.ext_cps[0].cp_config) == {"c", "gone"}
    assert read.ext_cps[0].cp_config["gone"] is None


def test_a_grants_list_of_vims_becomes_a_map() -> None:
    grant = {"id": new_id(), "vnfInstanceId": "i", "vnfLcmOpOccId": "o"}
    vims = [{"id": "vim1", "vimType": "openstack"}, {"vimType": "kubernetes"}]
    read = Grant.model_validate({**grant, "vimConnectionInfo": vims}).vim_connection_info
    assert read is not None
    assert {name: vim.vim_type for name, vim in read.items()} == {"vim1": "openstack", "1": "kubernetes"}
    as_map = {"vim1": vims[0], "1": vims[1]}
    assert Grant.model_validate({**grant, "vimConnectionInfo": as_map}).vim_connection_info == read


@pytest.mark.parametrize(
    ("given", "long", "short"),
    [
        ("openstack", OPENSTACK, "openstack"),
        ("ETSINFV.OPENSTACK_KEYSTONE.V_2", OPENSTACK, "openstack"),
        (OPENSTACK, OPENSTACK, "openstack"),
        ("kubernetes", KUBERNETES, "kubernetes"),
        (KUBERNETES, KUBERNETES, "kubernetes"),
        ("ETSINFV.OTHER.V_1", "ETSINFV.OTHER.V_1", "ETSINFV.OTHER.V_1"),
    ],
)
def test_vim_types_have_a_long_and_a_short_name(given: str, long: str, short: str) -> None:
    assert (long_vim_type(given), short_vim_type(given)) == (long, short)
