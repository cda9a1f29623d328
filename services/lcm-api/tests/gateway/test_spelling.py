"""Attributes that requests do not have: refused by name, with the nearest one."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lcm_api.http.bodies import parse
from kubevnfm_lcm_api.http.spelling import PARAMETERS, check_attributes
from kubevnfm_lcm_api.notifications.domain.faults import FmSubscriptionRequest
from kubevnfm_lcm_api.notifications.domain.lifecycle import LccnSubscriptionRequest
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    ChangeExtVnfConnectivityRequest,
    ChangeVnfFlavourRequest,
    CreateVnfRequest,
    HealVnfRequest,
    InstantiateVnfRequest,
    OperateVnfRequest,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
    TerminateVnfRequest,
)
from kubevnfm_sol.packages import CreateVnfPkgInfoRequest
from pydantic import BaseModel
from worlds.lcm_world import World


@pytest.mark.parametrize(
    ("model", "name", "meant"),
    [
        (CreateVnfRequest, "vnfDId", "vnfdId"),
        (InstantiateVnfRequest, "instantationLevelId", "instantiationLevelId"),
        (InstantiateVnfRequest, "vimConnectionInfos", "vimConnectionInfo"),
        (ScaleVnfRequest, "numberOfStep", "numberOfSteps"),
        (ScaleVnfRequest, "number_of_steps", "numberOfSteps"),
        (ScaleVnfRequest, "additionalParam", "additionalParams"),
        (ScaleVnfToLevelRequest, "scaleInof", "scaleInfo"),
        (HealVnfRequest, "vnfcInstanceIds", "vnfcInstanceId"),
        (OperateVnfRequest, "stopTipe", "stopType"),
        (TerminateVnfRequest, "graceful-termination-timeout", "gracefulTerminationTimeout"),
        (ChangeExtVnfConnectivityRequest, "additionalParms", "additionalParams"),
        (ChangeVnfFlavourRequest, "extension", "extensions"),
        (ChangeCurrentVnfPkgRequest, "AdditionalParams", "additionalParams"),
        (LccnSubscriptionRequest, "filters", "filter"),
    ],
)
def test_a_misspelled_attribute_is_refused_with_the_one_that_is_meant(
    model: type[BaseModel], name: str, meant: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_attributes(model, {name: 1})
    assert f"{name}: no such attribute: did you mean {meant}?" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"filter": {"perceivedSeverities": ["BAD"]}}, "perceivedSeverities[0]: 'CRITICAL', 'MAJOR', "),
        ({"filter": "x"}, "filter: a JSON object expected"),
        ({"callbackUri": "http://x/", "filter": {"probableCauses": [1]}}, "a valid string expected"),
    ],
)
def test_a_wrong_value_is_refused_in_our_own_words(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(FmSubscriptionRequest, given)
    assert said in str(caught.value)
    assert "Input should" not in str(caught.value)
    with pytest.raises(InvalidInput, match=r"numberOfSteps: a value greater than .* expected"):
        parse(ScaleVnfRequest, {"type": "SCALE_OUT", "aspectId": "a", "numberOfSteps": 0})


@pytest.mark.parametrize(
    ("model", "name"),
    [
        # An attribute of later versions of SOL003, which asks for more than these can.
        (InstantiateVnfRequest, "targetScaleLevelInfo"),
        (HealVnfRequest, "error_point"),
        (ScaleVnfRequest, "x"),
        (CreateVnfPkgInfoRequest, "vnfdId"),
        # A change of package keeps the flavour: change_flavour changes it.
        (ChangeCurrentVnfPkgRequest, "flavourId"),
    ],
)
def test_an_attribute_that_resembles_none_is_refused_too_unless_it_is_null(model: type[BaseModel], name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: no such attribute: "):
        check_attributes(model, {name: 1})
    check_attributes(model, {name: None})


TACKERS_V1: dict[type[BaseModel], str] = {
    CreateVnfRequest: "vnfdId vnfInstanceName vnfInstanceDescription metadata",
    InstantiateVnfRequest: "flavourId instantiationLevelId extVirtualLinks extManagedVirtualLinks vimConnectionInfo additionalParams",
    TerminateVnfRequest: "terminationType gracefulTerminationTimeout additionalParams",
    HealVnfRequest: "cause vnfcInstanceId additionalParams",
    ScaleVnfRequest: "type aspectId numberOfSteps additionalParams",
    ChangeExtVnfConnectivityRequest: "extVirtualLinks vimConnectionInfo additionalParams",
    LccnSubscriptionRequest: "filter callbackUri authentication verbosity metadata",
}
"""The attributes that Tacker's schemas of v1 name, and the samples of its client; both admit any others."""


@pytest.mark.parametrize("model", TACKERS_V1)
def test_all_attributes_that_clients_of_tacker_send_are_known(model: type[BaseModel]) -> None:
    check_attributes(model, dict.fromkeys(TACKERS_V1[model].split(), 1))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("upgrade-type", "upgrade_type"),
        ("UpgradeType", "upgrade_type"),
        ("vdu-params", "vdu_params"),
        ("vdu_param", "vdu_params"),
        ("lcm_operation_user_data", "lcm-operation-user-data"),
        ("lcm-kubernetes-def-file", "lcm-kubernetes-def-files"),
    ],
)
def test_a_misspelled_parameter_is_refused_with_the_one_that_is_meant(name: str, meant: str) -> None:
    with pytest.raises(InvalidInput, match=f"additionalParams/{name}: did you mean {meant}"):
        check_attributes(HealVnfRequest, {"additionalParams": {name: 1}})


def test_parameters_of_a_package_may_have_any_other_name() -> None:
    check_attributes(
        HealVnfRequest, {"additionalParams": dict.fromkeys([*PARAMETERS, "all", "flavor", "data", "nam"], 1)}
    )


@pytest.mark.parametrize("version", ["v1", "lcm"])
async def test_both_versions_refuse_a_misspelled_attribute_before_anything_is_done(world: World, version: str) -> None:
    ask: Any = getattr(world, version)
    await world.sample()
    path = f"/vnf_instances/{await world.create()}/instantiate"
    wrong = {"flavourId": "simple", "instantiationLevelID": "l", "x": 1, "additionalParams": {"vdu-params": []}}
    detail = (await ask("POST", path, wrong)).problem(400)["detail"]
    assert "instantiationLevelID: no such attribute: did you mean instantiationLevelId?" in detail
    assert "x: no such attribute: known are flavourId, " in detail
    assert "additionalParams/vdu-params" in detail
    assert world.twins.commands == []


def test_each_parameter_is_meant_by_all_names_that_differ_from_it_by_one_edit() -> None:
    """A request may have hundreds of thousands of names, so that each is compared with few parameters: with those that it can mean."""
    for name in PARAMETERS:
        for at in range(len(name)):
            before, here, after = name[:at], name[at], name[at + 1 :]
            for edited in (
                before + after,
                f"{before}q{here}{after}",
                f"{before}q{after}",
                f"{before}{after[:1]}{here}{after[1:]}",
            ):
                if edited not in PARAMETERS:
                    with pytest.raises(InvalidInput, match=r"did you mean"):
                        check_attributes(ScaleVnfRequest, {"additionalParams": {edited: 1}})
