"""Packages with user data as users of Tacker ship it: every form runs every operation; no NFVO takes part."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from lab_process import LabControl
from user import User
from user_data_packages import FORMS, VDUS, Form, instantiate_body, links, user_data_package


async def onboarded(user: User, form: Form, **fields: Any) -> str:
    """Return the VNFD id of a new package."""
    vnfd_id = str(uuid.uuid4())
    package = await user.upload(user_data_package(vnfd_id, form, **fields))
    assert package["onboardingState"] == "ONBOARDED", package
    return vnfd_id


async def info_of(user: User, instance_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await user.instance(instance_id))["instantiatedVnfInfo"]
    return found


def images(info: dict[str, Any]) -> dict[str, set[str]]:
    """Return the images of the machines by VDU."""
    found: dict[str, set[str]] = {vdu: set() for vdu in VDUS}
    for vnfc in info["vnfcResourceInfo"]:
        found[vnfc["vduId"]].add(vnfc["metadata"]["image_id"])
    return found


def servers(info: dict[str, Any], vdu: str) -> set[str]:
    return {one["computeResource"]["resourceId"] for one in info["vnfcResourceInfo"] if one["vduId"] == vdu}


@pytest.mark.parametrize("name", FORMS)
async def test_a_package_with_user_data_runs_every_operation(user: User, lab: LabControl, name: str) -> None:
    """API-055, API-058, API-059: heal, scale and a change of some VDUs find what the operation before left."""
    form = FORMS[name]
    instance_id = await user.create(await onboarded(user, form))
    await user.do(instance_id, "instantiate", instantiate_body(form))
    info = await info_of(user, instance_id)
    assert {vdu: len(servers(info, vdu)) for vdu in VDUS} == {"VDU1": 1, "VDU2": 1}
    (uploaded,) = images(info)["VDU1"]
    left = info["metadata"]["nfv"]
    of_vdu1 = left["VDU"]["VDU1" if form.has_groups else "VDU1-0"]
    assert (of_vdu1["vcImageId"], of_vdu1["computeFlavourId"]) == (uploaded, "m1.tiny")
    (vdu1,) = [one for one in info["vnfcResourceInfo"] if one["vduId"] == "VDU1"]
    assert vdu1["metadata"]["image-VDU1" if form.has_groups else "image-VDU1-0"] == uploaded

    for aspect in ("VDU1_scale", "VDU1_scale", "VDU2_scale"):
        out = {"type": "SCALE_OUT", "aspectId": aspect, "additionalParams": form.parameters}
        await user.do(instance_id, "scale", out)
    info = await info_of(user, instance_id)
    assert images(info)["VDU1"] == {uploaded}, "a machine that is added later has the package's image too"
    assert {vdu: len(servers(info, vdu)) for vdu in VDUS} == {"VDU1": 3, "VDU2": 2}

    healed = next(one for one in info["vnfcInfo"] if one["vduId"] == "VDU1")["id"]
    await user.do(instance_id, "heal", {"vnfcInstanceId": [healed], "additionalParams": form.parameters})
    after = await info_of(user, instance_id)
    assert len(servers(after, "VDU1") & servers(info, "VDU1")) == 2
    assert servers(after, "VDU2") == servers(info, "VDU2")
    assert after["metadata"]["nfv"] == info["metadata"]["nfv"]

    await user.do(
        instance_id, "change_ext_conn", {"extVirtualLinks": links("net1"), "additionalParams": form.parameters}
    )
    info = await info_of(user, instance_id)
    assert {cp["network"] for cp in info["metadata"]["nfv"]["CP"].values()} == {"net1"}

    other = await onboarded(user, form, version="2.0", flavor="m1.small")
    some = {"upgrade_type": "RollingUpdate", "vdu_params": [{"vdu_id": "VDU1"}]}
    await user.do(instance_id, "change_vnfpkg", {"vnfdId": other, "additionalParams": {**some, **form.parameters}})
    after = await info_of(user, instance_id)
    (new_image,) = images(after)["VDU1"]
    assert new_image != uploaded
    assert images(after)["VDU2"] == images(info)["VDU2"]
    assert servers(after, "VDU2") == servers(info, "VDU2"), "a VDU that is not named keeps its machines"
    flavors = {(one["vduId"], one["metadata"]["flavor"]) for one in after["vnfcResourceInfo"]}
    assert flavors == {("VDU1", "m1.small"), ("VDU2", "m1.tiny")}

    for _ in range(2):
        await user.do(
            instance_id, "scale", {"type": "SCALE_IN", "aspectId": "VDU1_scale", "additionalParams": form.parameters}
        )
    await user.do(
        instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "VDU1_scale", "additionalParams": form.parameters}
    )
    info = await info_of(user, instance_id)
    assert len(servers(info, "VDU1")) == 2
    if not form.has_groups:
        assert sorted(v["metadata"]["vdu_idx"] for v in info["vnfcResourceInfo"] if v["vduId"] == "VDU1") == [0, 1]

    for level in (2, 2, 1):
        target = {"aspectId": "VDU2_scale", "scaleLevel": level}
        await user.do(instance_id, "scale_to_level", {"scaleInfo": [target], "additionalParams": form.parameters})
        assert len(servers(await info_of(user, instance_id), "VDU2")) == level + 1
    info = await info_of(user, instance_id)

    await user.do(instance_id, "heal", {"additionalParams": {"all": True, **form.parameters}})
    after = await info_of(user, instance_id)
    assert {vdu: len(servers(after, vdu)) for vdu in VDUS} == {"VDU1": 2, "VDU2": 2}
    assert not servers(after, "VDU1") & servers(info, "VDU1")
    await user.terminate(instance_id)
