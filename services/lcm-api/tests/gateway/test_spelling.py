"""Misspelled attributes of requests: refused by name, while names that resemble none are ignored (SOL013)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lcm_api.http.spelling import PARAMETERS, check_spelling
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
        check_spelling(model, {name: 1})
    assert f"{name}: no such attribute; did you mean {meant}? Known are " in str(caught.value)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        # Later versions of SOL003 and Tacker's clients have attributes that these types do not have.
        (InstantiateVnfRequest, "targetScaleLevelInfo"),
        (HealVnfRequest, "error_point"),
        (ScaleVnfRequest, "types"),
        (ScaleVnfRequest, "x"),
        (LccnSubscriptionRequest, "authentication"),
    ],
)
def test_an_attribute_that_resembles_none_is_left_alone(model: type[BaseModel], name: str) -> None:
    check_spelling(model, {name: 1})


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
        check_spelling(HealVnfRequest, {"additionalParams": {name: 1}})


def test_parameters_of_a_package_may_have_any_other_name() -> None:
    check_spelling(
        HealVnfRequest, {"additionalParams": dict.fromkeys([*PARAMETERS, "all", "flavor", "data", "nam"], 1)}
    )


@pytest.mark.parametrize("version", ["v1", "lcm"])
async def test_both_versions_refuse_a_misspelled_attribute_before_anything_is_done(world: World, version: str) -> None:
    ask: Any = getattr(world, version)
    await world.sample()
    path = f"/vnf_instances/{await world.create()}/instantiate"
    wrong = {"flavourId": "simple", "instantiationLevelID": "l", "additionalParams": {"vdu-params": []}}
    detail = (await ask("POST", path, wrong)).problem(400)["detail"]
    assert "instantiationLevelID" in detail
    assert "additionalParams/vdu-params" in detail
    assert world.twins.commands == []
