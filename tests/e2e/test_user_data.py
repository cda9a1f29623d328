"""Packages of machines as users of Tacker ship them: every form runs every operation by each API; no NFVO takes part."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from callers.user import ApiVersion, User
from packages.user_data_packages import FORMS, VDUS, Form, instantiate_body, links, user_data_package
from servers.wirings import variants


@dataclass(frozen=True)
class Vnf:
    """A VNF of a form, and the user who changes it."""

    id: str
    form: Form
    caller: User
    reader: User
    """A user of v2, whose view alone has the parameter ``nfv`` of the stack."""

    async def do(self, task: str, parameters: dict[str, Any] | None = None, **body: Any) -> None:
        """Carry out an operation, whose request names the user data again as Tacker's guides have it, or does not."""
        sent = {**(parameters or {}), **({} if self.form.is_named_once else self.form.parameters)}
        await self.caller.do(self.id, task, {**body, "additionalParams": sent})

    async def info(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.caller.instance(self.id))["instantiatedVnfInfo"]
        return found

    async def nfv(self) -> dict[str, Any]:
        """Return the parameter ``nfv``; empty without a Base HOT."""
        info = (await self.reader.instance(self.id))["instantiatedVnfInfo"]
        return dict(info["metadata"].get("nfv") or {})


async def onboarded(user: User, form: Form, **fields: Any) -> str:
    """Return the VNFD id of a new package."""
    vnfd_id = str(uuid.uuid4())
    package = await user.upload(user_data_package(vnfd_id, form, **fields))
    assert package["onboardingState"] == "ONBOARDED", package
    return vnfd_id


def images(info: dict[str, Any]) -> dict[str, set[str]]:
    """Return the images of the machines by VDU."""
    return facts(info, "image_id")


def flavors(info: dict[str, Any]) -> dict[str, set[str]]:
    """Return the flavors of the machines by VDU."""
    return facts(info, "flavor")


def facts(info: dict[str, Any], name: str) -> dict[str, set[str]]:
    return {vdu: {one["metadata"][name] for one in info["vnfcResourceInfo"] if one["vduId"] == vdu} for vdu in VDUS}


def servers(info: dict[str, Any], vdu: str) -> set[str]:
    return {one["computeResource"]["resourceId"] for one in info["vnfcResourceInfo"] if one["vduId"] == vdu}


def networks(info: dict[str, Any]) -> set[str]:
    return {link["resourceHandle"]["resourceId"] for link in info["extVirtualLinkInfo"]}


def _in_every_run(wiring: str, version: str, name: str) -> bool:
    """A form without user data by v2; v1 and the six processes with the form that sends most."""
    return (wiring, version, name) in {("single", "v2", "tosca"), ("six", "v1", "shipped-default")}


@pytest.mark.parametrize(
    ("installation", "version", "name"),
    variants(("v1", "v2"), FORMS, every_run=_in_every_run),
    indirect=["installation"],
)
async def test_a_package_runs_every_operation(user: User, v1: User, name: str, version: ApiVersion) -> None:
    """API-055, API-058, API-059, API-060: each operation finds what the operation before left.

    Where only instantiate names the class, the built-in behaviour changes what the class has made.
    """
    form = FORMS[name]
    caller = v1 if version == "v1" else user
    vnf = Vnf(await caller.create(await onboarded(caller, form)), form, caller, user)
    await caller.do(vnf.id, "instantiate", instantiate_body(form, version=version))
    info = await vnf.info()
    assert {vdu: len(servers(info, vdu)) for vdu in VDUS} == {"VDU1": 1, "VDU2": 1}
    if form.has_hot:
        check_what_user_data_left(form, (await user.instance(vnf.id))["instantiatedVnfInfo"])
    await scale_and_heal_one(vnf)
    await vnf.do("change_ext_conn", extVirtualLinks=links("net1", version=version))
    assert networks(await vnf.info()) == {"net1"}
    # Only v2 has a change of package.
    await change_package_of_some(Vnf(vnf.id, form, user, user))
    await scale_in_and_to_levels(vnf)
    await stop_start_and_modify(vnf)
    await heal_all(vnf)
    await caller.terminate(vnf.id)


def check_what_user_data_left(form: Form, info: dict[str, Any]) -> None:
    (uploaded,) = images(info)["VDU1"]
    of_vdu1 = info["metadata"]["nfv"]["VDU"]["VDU1" if form.has_groups else "VDU1-0"]
    flavor, image = form.names
    assert (of_vdu1[image], of_vdu1[flavor]) == (uploaded, "m1.tiny")
    if form.has_policies:
        return
    (vdu1,) = [one for one in info["vnfcResourceInfo"] if one["vduId"] == "VDU1"]
    assert vdu1["metadata"]["image-VDU1" if form.has_groups else "image-VDU1-0"] == uploaded


async def scale_and_heal_one(vnf: Vnf) -> None:
    (uploaded,) = images(await vnf.info())["VDU1"]
    for aspect in ("VDU1_scale", "VDU1_scale", "VDU2_scale"):
        await vnf.do("scale", type="SCALE_OUT", aspectId=aspect)
    info = await vnf.info()
    assert images(info)["VDU1"] == {uploaded}, "a machine that is added later has the package's image too"
    assert {vdu: len(servers(info, vdu)) for vdu in VDUS} == {"VDU1": 3, "VDU2": 2}
    if not vnf.form.has_hot:
        assert len(facts(info, "host")["VDU1"]) == 3, "SEQ-163"
    asks_v1 = vnf.form.class_name == "V1UserData" and (vnf.caller.version == "v1" or not vnf.form.is_named_once)
    nfv = await vnf.nfv()
    assert nfv.pop("asked", None) == (["SCALE_OUT", 1] if asks_v1 else None)

    healed = next(one for one in info["vnfcInfo"] if one["vduId"] == "VDU1")["id"]
    await vnf.do("heal", vnfcInstanceId=[healed])
    after = await vnf.info()
    assert len(servers(after, "VDU1") & servers(info, "VDU1")) == 2
    assert servers(after, "VDU2") == servers(info, "VDU2")
    left = await vnf.nfv()
    assert left.pop("asked", None) == (["HEAL", "VDU1"] if asks_v1 else None)
    assert left == nfv


async def change_package_of_some(vnf: Vnf) -> None:
    info = await vnf.info()
    other = await onboarded(vnf.caller, vnf.form, version="2.0", flavor="m1.small")
    some = {"upgrade_type": "RollingUpdate", "vdu_params": [{"vdu_id": "VDU1"}]}
    await vnf.do("change_vnfpkg", some, vnfdId=other)
    after = await vnf.info()
    (new_image,) = images(after)["VDU1"]
    assert new_image not in images(info)["VDU1"]
    assert images(after)["VDU2"] == images(info)["VDU2"]
    assert servers(after, "VDU2") == servers(info, "VDU2"), "a VDU that is not named keeps its machines"
    assert flavors(after)["VDU2"] == flavors(info)["VDU2"]
    (new_flavor,) = flavors(after)["VDU1"]
    assert new_flavor not in flavors(info)["VDU1"]
    # Without parameters of a template in v2's form, the machine shows Nova's id of the flavor.
    assert new_flavor == "m1.small" or not vnf.form.has_hot or vnf.form.has_policies


async def scale_in_and_to_levels(vnf: Vnf) -> None:
    for direction in ("SCALE_IN", "SCALE_IN", "SCALE_OUT"):
        await vnf.do("scale", type=direction, aspectId="VDU1_scale")
    info = await vnf.info()
    assert len(servers(info, "VDU1")) == 2
    if vnf.form.file is not None and not vnf.form.has_groups:
        assert sorted(v["metadata"]["vdu_idx"] for v in info["vnfcResourceInfo"] if v["vduId"] == "VDU1") == [0, 1]
    for level in (2, 2, 1):
        await vnf.do("scale_to_level", scaleInfo=[{"aspectId": "VDU2_scale", "scaleLevel": level}])
        assert len(servers(await vnf.info(), "VDU2")) == level + 1


async def stop_start_and_modify(vnf: Vnf) -> None:
    for state in ("STOPPED", "STARTED"):
        wait = {"stopType": "FORCEFUL"} if state == "STOPPED" else {}
        await vnf.caller.do(vnf.id, "operate", {"changeStateTo": state, **wait})
        assert {one["vnfcState"] for one in (await vnf.info())["vnfcInfo"]} == {state}
    changed = await vnf.caller.lcm("PATCH", f"/vnf_instances/{vnf.id}", {"vnfInstanceName": "renamed"})
    view = await vnf.caller.rest(changed.must(202).headers["Location"].rsplit("/", 1)[-1])
    assert view["state"] == "COMPLETED", view
    assert (await vnf.caller.instance(vnf.id))["vnfInstanceName"] == "renamed"


async def heal_all(vnf: Vnf) -> None:
    info = await vnf.info()
    # In v1 a heal that names no VNFC always replaces the stack.
    await vnf.do("heal", {} if vnf.caller.version == "v1" else {"all": True})
    after = await vnf.info()
    assert {vdu: len(servers(after, vdu)) for vdu in VDUS} == {"VDU1": 2, "VDU2": 2}
    assert not servers(after, "VDU1") & servers(info, "VDU1")
