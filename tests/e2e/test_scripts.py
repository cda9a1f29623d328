"""Scripts of packages on every operation, as users of Tacker ship them: their input, the machines that they reach, their failures."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any, Final

import pytest
from callers.user import FORCEFUL, GRACEFUL, ApiVersion, User, sample_body
from clouds.lab_process import LabControl
from packages.package_variants import scripted_cluster, variant
from packages.user_data_packages import FORMS, VDUS, Form, instantiate_body, links, user_data_package
from servers.processes import PROJECT
from servers.wirings import variants

SCRIPTS: Final = PROJECT / "tests/fixtures/scripts"
FORM: Final = FORMS["none"]
PASSWORD: Final = "of-the-application"
RECORD: Final = "Scripts/record.py"
DRIVER: Final = "Scripts/own_driver.py"
OPERATIONS: Final = (
    "instantiate", "scale", "scale_to_level", "heal", "operate", "change_external_connectivity", "modify_information",
    "change_current_package", "terminate",
)  # fmt: skip


async def onboarded(user: User, *, version: str = "1.0", form: Form = FORM, **fields: Any) -> str:
    """Return the VNFD id of a new package whose scripts record what they get."""
    vnfd_id = str(uuid.uuid4())
    phases = [f"{name}_{moment}" for name in OPERATIONS for moment in ("start", "end")]
    phases += ["scale_rollback_start", "scale_rollback_end"]
    extra = {f"Scripts/{one.name}": one.read_text(encoding="utf-8") for one in SCRIPTS.glob("*.py")}
    packed = user_data_package(
        vnfd_id, form, version=version, scripts=dict.fromkeys(phases, RECORD), extra=extra, **fields
    )
    package = await user.upload(packed)
    assert package["onboardingState"] == "ONBOARDED", package
    assert "warnings" not in package, package
    return vnfd_id


class Recorded:
    """An instance, and what its scripts have left in its metadata."""

    def __init__(self, user: User, instance_id: str) -> None:
        self.user, self.instance_id = user, instance_id

    async def do(self, task: str, body: dict[str, Any], *, phases: str = "") -> list[dict[str, Any]]:
        """Carry out an operation; return what its first and its last script got."""
        await self.user.do(self.instance_id, task, body)
        return await self.runs(phases or task)

    async def runs(self, name: str) -> list[dict[str, Any]]:
        shown = (await self.user.instance(self.instance_id))["metadata"]["runs"]
        return [shown[f"{name}_start"], shown[f"{name}_end"]]


@pytest.mark.parametrize(
    ("installation", "version"),
    variants(("v1", "v2"), every_run=lambda wiring, version: (wiring, version) == ("six", "v2")),
    indirect=["installation"],
)
async def test_every_operation_runs_the_scripts_of_its_phases(
    user: User, v1: User, lab: LabControl, version: ApiVersion
) -> None:
    """SEQ-007, 6.5: the same dictionary in both versions of the API; after the operation with what it has changed."""
    caller = user if version == "v2" else v1
    ssh = {
        "port": user.installation.lab.ssh_port,
        "username": "ubuntu",
        "password": user.installation.lab.machine_password,
    }
    recorded = Recorded(caller, await caller.create(await onboarded(user)))
    body = instantiate_body(FORM, version=version)
    start, end = await recorded.do("instantiate", {**body, "additionalParams": {"ssh": ssh}})
    assert (start["machines"], start["added"], start["said"]) == (0, 2, [])
    assert (end["machines"], end["version"], end["said"]) == (2, "1.0", ["hello"] * 2)
    assert {"flavourId", "extVirtualLinks", "additionalParams"} <= set(end["request"])

    start, end = await recorded.do("scale", {"type": "SCALE_OUT", "aspectId": "VDU1_scale"})
    assert [(run["machines"], run["added"], run["removed"]) for run in (start, end)] == [(2, 1, 0), (3, 1, 0)]
    if version == "v2":
        target = {"scaleInfo": [{"aspectId": "VDU1_scale", "scaleLevel": 0}]}
        start, end = await recorded.do("scale_to_level", target)
        assert [(run["machines"], run["removed"]) for run in (start, end)] == [(3, 1), (2, 1)]
    info = (await caller.instance(recorded.instance_id))["instantiatedVnfInfo"]
    healed = next(one["id"] for one in info["vnfcInfo"] if one["vduId"] == "VDU1")
    start, end = await recorded.do("heal", {"vnfcInstanceId": [healed]})
    assert [(run["added"], run["removed"]) for run in (start, end)] == [(1, 1)] * 2
    await recorded.do(
        "change_ext_conn",
        {"extVirtualLinks": links("net1", version=version)},
        phases="change_external_connectivity",
    )
    if version == "v2":
        for state in ("STOPPED", "STARTED"):
            await recorded.do(
                "operate",
                {"changeStateTo": state, "stopType": "FORCEFUL"} if state == "STOPPED" else {"changeStateTo": state},
            )
        accepted = (await user.lcm("PATCH", f"/vnf_instances/{recorded.instance_id}", {"vnfInstanceName": "n"})).must(
            202
        )
        await user.rest(accepted.headers["Location"].rsplit("/", 1)[-1])
        start, end = await recorded.runs("modify_information")
        assert [run["request"] for run in (start, end)] == [["vnfInstanceName"]] * 2
    await caller.do(recorded.instance_id, "terminate", GRACEFUL)
    start, end = await recorded.runs("terminate")
    assert (start["machines"] > 0, end["machines"]) == (True, 0)
    assert start["removed"] == start["machines"]
    await caller.delete(recorded.instance_id)


async def test_a_driver_class_of_a_package_runs_in_each_phase(user: User, v1: User, lab: LabControl) -> None:
    """SEQ-004, 6.6, 6.7: a class as Tacker's v1 loads it finds its machines through Heat, and what it leaves is stored."""
    vnfd_id = str(uuid.uuid4())
    phases = [
        f"{name}_{moment}" for name in ("instantiate", "scale", "heal", "terminate") for moment in ("start", "end")
    ]
    extra = {DRIVER: (SCRIPTS / "own_driver.py").read_text(encoding="utf-8")}
    packed = user_data_package(vnfd_id, FORM, scripts=dict.fromkeys(phases, DRIVER), extra=extra)
    package = await user.upload(packed)
    assert "warnings" not in package, package
    ssh = {
        "port": user.installation.lab.ssh_port,
        "username": "ubuntu",
        "password": user.installation.lab.machine_password,
    }
    recorded = Recorded(v1, await v1.create(vnfd_id))
    body = {**instantiate_body(FORM, version="v1"), "additionalParams": {"ssh": ssh}}
    failing = {**body, "additionalParams": {"fail": "yes", **body["additionalParams"]}}
    operation = await v1.start(recorded.instance_id, "instantiate", failing)
    detail = (await v1.rest(operation))["error"]["detail"]
    assert detail.endswith("MgmtDriverParamInvalid: The parameter fail is invalid.")
    assert (await v1.act(operation, "rollback"))["state"] == "ROLLED_BACK"

    start, end = await recorded.do("instantiate", body)
    assert start == {"machines": 0, "flavour": "simple"}
    assert end == {"machines": 2, "said": ["hello"] * 2}
    scale = {"type": "SCALE_OUT", "aspectId": "VDU1_scale"}
    start, end = await recorded.do("scale", scale)
    assert start == {"machines": 2, "leaving": []}
    assert end == {"machines": 3, "said": ["hello"], "type": "SCALE_OUT", "aspect": "VDU1_scale"}
    start, end = await recorded.do("scale", {**scale, "type": "SCALE_IN"})
    assert [len(start["leaving"]), end["machines"]] == [1, 2]
    info = (await v1.instance(recorded.instance_id))["instantiatedVnfInfo"]
    healed = next(one["id"] for one in info["vnfcInfo"] if one["vduId"] == "VDU1")
    start, end = await recorded.do("heal", {"vnfcInstanceId": [healed]})
    assert [start, end] == [{"machines": 2, "known": [True]}, {"machines": 2}]
    await v1.do(recorded.instance_id, "terminate", GRACEFUL)
    start, end = await recorded.runs("terminate")
    assert [start, end] == [{"machines": 2, "type": "GRACEFUL"}, {"machines": 0}]
    await v1.delete(recorded.instance_id)
    assert str(ssh["password"]) not in "".join((*user.heard, *v1.heard))


async def test_a_change_of_package_runs_the_new_scripts_and_coordinates_each_machine(
    user: User, lab: LabControl
) -> None:
    """API 3.4, SEQ 6.5: in Tacker's order, one machine after the other, and backwards in the rollback."""
    recorded = Recorded(user, await user.create(await onboarded(user)))
    await recorded.do("instantiate", instantiate_body(FORM))
    other = await onboarded(user, version="2.0", flavor="m1.micro")

    def of_both(**second: Any) -> list[dict[str, Any]]:
        logins = [{"cp_name": f"{vdu}_CP1", "username": "ubuntu", "password": PASSWORD} for vdu in VDUS]
        return [
            {"vdu_id": vdu, "old_vnfc_param": login, "new_vnfc_param": {**login, **more}}
            for vdu, login, more in zip(VDUS, logins, ({}, second), strict=True)
        ]

    params = {
        "upgrade_type": "RollingUpdate",
        "lcm-operation-coordinate-new-vnf": "./Scripts/coordinate.py",
        "lcm-operation-coordinate-old-vnf": "Scripts/coordinate.py",
        "vdu_params": of_both(fails=True),
    }
    operation = await user.start(recorded.instance_id, "change_vnfpkg", {"vnfdId": other, "additionalParams": params})
    view = await user.rest(operation)
    assert view["state"] == "FAILED_TEMP"
    detail = "coordinate-new/VDU2_group/0 failed: Scripts/coordinate.py ended with exit status 1"
    assert detail in view["error"]["detail"]
    ended = {step["name"]: step["endedAt"] for step in view["steps"] if "endedAt" in step}
    begun = {step["name"]: step["startedAt"] for step in view["steps"] if "startedAt" in step}
    assert ended["change/VDU1_group"] <= begun["coordinate-new/VDU1_group/0"]
    assert ended["coordinate-new/VDU1_group/0"] <= begun["change/VDU2_group"], "only now the second machine changes"
    view = await user.act(operation, "rollback")
    assert view["state"] == "ROLLED_BACK"
    log = await user.log(operation)
    said = [line for line in log.splitlines() if line.startswith("ubuntu VDU")]
    fact = "has address knows vnfc CHANGE_VNFPKG 36 ***"
    assert said == [
        f"ubuntu {cp} {direction} {fact}"
        for direction, cps in (("forwards", ("VDU1_CP1", "VDU2_CP1")), ("rollback", ("VDU2_CP1", "VDU1_CP1")))
        for cp in cps
    ]
    assert PASSWORD not in log
    assert "change_current_package_start" not in (await user.instance(recorded.instance_id))["metadata"]["runs"]

    params["vdu_params"] = of_both()
    start, end = await recorded.do(
        "change_vnfpkg", {"vnfdId": other, "additionalParams": params}, phases="change_current_package"
    )
    assert [run["version"] for run in (start, end)] == ["2.0", "2.0"]
    await user.terminate(recorded.instance_id)


async def test_machines_by_tosca_alone_are_coordinated_by_the_names_of_the_vnfd(user: User, lab: LabControl) -> None:
    """SEQ 6.5. A name that no machine has is refused before a machine changes: no rollback could coordinate it."""
    form = FORMS["tosca"]
    recorded = Recorded(user, await user.create(await onboarded(user, form=form)))
    await recorded.do("instantiate", instantiate_body(form))
    await recorded.do("scale", {"type": "SCALE_OUT", "aspectId": "VDU1_scale"})
    other = await onboarded(user, version="2.0", flavor="m1.micro", form=form)
    login = {"cp_name": "VDU1_CP1", "username": "ubuntu", "password": PASSWORD}
    params = {
        "upgrade_type": "RollingUpdate",
        "lcm-operation-coordinate-new-vnf": "Scripts/coordinate.py",
        "lcm-operation-coordinate-old-vnf": "Scripts/coordinate.py",
    }

    def request(old: str, **new: Any) -> dict[str, Any]:
        vdu = {"vdu_id": "VDU1", "old_vnfc_param": {**login, "cp_name": old}, "new_vnfc_param": {**login, **new}}
        return {"vnfdId": other, "additionalParams": {**params, "vdu_params": [vdu]}}

    refused = (await user.ask(recorded.instance_id, "change_vnfpkg", request("VDU2_CP1"))).must(422)
    assert "vdu_params[0]/old_vnfc_param/cp_name: there is no connection point VDU2_CP1" in refused.detail
    for name in ("VDU1_CP9", "VDU2_CP1"):
        body = request("VDU1_CP1", cp_name=name)
        refused = (await user.ask(recorded.instance_id, "change_vnfpkg", body)).must(422)
        assert (
            f"vdu_params[0]/new_vnfc_param/cp_name: VDU VDU1 of the package has no connection point {name}"
            in refused.detail
        )
    operation = await user.start(recorded.instance_id, "change_vnfpkg", request("VDU1_CP1", fails=True))
    # Which of the machines comes first depends on which is the older one.
    assert re.search(r"coordinate-new/VDU1-\d/0 failed", (await user.rest(operation))["error"]["detail"])
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    await recorded.do("change_vnfpkg", request("VDU1_CP1"), phases="change_current_package")
    await user.terminate(recorded.instance_id)


async def test_a_script_that_fails_is_retried_or_rolled_back_with_what_it_kept(user: User, lab: LabControl) -> None:
    """Tacker's error handling: user_script_err_handling_data, and the scripts of a rollback."""
    recorded = Recorded(user, await user.create(await onboarded(user)))
    await recorded.do("instantiate", instantiate_body(FORM))
    scale = {"type": "SCALE_OUT", "aspectId": "VDU1_scale"}

    async def failed(phase: str) -> str:
        params = {"fail_at": phase, "password": PASSWORD}
        operation = await user.start(recorded.instance_id, "scale", {**scale, "additionalParams": params})
        view = await user.rest(operation)
        assert view["state"] == "FAILED_TEMP"
        detail = f"{phase} failed: {RECORD} ended with exit status 3; its last output:\n| the application of *** does not start"
        assert detail in view["error"]["detail"]
        return operation

    operation = await failed("scale_end")
    assert (await user.act(operation, "retry"))["state"] == "COMPLETED"
    _, end = await recorded.runs("scale")
    assert (end["found"], end["machines"]) == ("scale_end", 3)
    assert PASSWORD not in await user.log(operation)

    operation = await failed("scale_end")
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    ran = [line.split()[3] for line in (await user.log(operation)).splitlines() if line.startswith("== ")]
    assert ran == ["scale_start:", "scale_end:", "scale_rollback_start:", "scale_rollback_end:"]
    assert PASSWORD not in "".join(user.heard)
    await user.terminate(recorded.instance_id)


CNF_PHASES: Final = {
    **{f"instantiate_{moment}": "record" for moment in ("start", "end", "rollback_start", "rollback_end")},
    **{f"{name}_{moment}": "record" for name in ("modify_information", "terminate") for moment in ("start", "end")},
}


async def onboarded_cnf(user: User, folder: Path, modify_end: str, *, version: str = "1.0") -> str:
    """Return the VNFD id of a new package of a CNF whose scripts record what they get."""
    vnfd_id = str(uuid.uuid4())
    files = {RECORD: (SCRIPTS / "record.py").read_text(encoding="utf-8"), "version": version}
    phases = {**CNF_PHASES, "modify_information_end": modify_end}
    package = await user.upload(variant(folder, vnfd_id=vnfd_id, phases=phases, files=files))
    assert package["onboardingState"] == "ONBOARDED", package
    assert "warnings" not in package, package
    return vnfd_id


def on_cluster(caller: User, cluster: dict[str, Any], **parameters: str) -> dict[str, Any]:
    """Return the instantiate request of the CNF."""
    body = sample_body("cnf", "instantiate")
    params = {**body["additionalParams"], "vdu_mapping": {"VDU1": {"kind": "Deployment", "name": "web"}}, **parameters}
    return caller.on_vim({**body, "additionalParams": params}, cluster)


@pytest.mark.kubeadm
async def test_scripts_of_a_cnf_run_in_each_operation_and_in_a_rollback(
    user: User, v1: User, lab: LabControl, tmp_path: Path
) -> None:
    """SEQ 6.5: as for machines, by both versions of the API, also beside a built-in driver."""
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", user.cluster())
    cluster = await user.vim_of_cluster(cluster_id)
    for caller, modify_end in ((user, "record"), (v1, "mgmt-container-update")):
        recorded = Recorded(caller, await caller.create(await onboarded_cnf(user, tmp_path, modify_end)))
        body = on_cluster(caller, cluster, fail_at="instantiate_end", password=PASSWORD)
        operation = await caller.start(recorded.instance_id, "instantiate", body)
        view = await caller.rest(operation)
        assert view["state"] == "FAILED_TEMP"
        reason = f"instantiate_end failed: {RECORD} ended with exit status 3; its last output:\n| the application of *** does not start"
        assert reason in view["error"]["detail"]
        assert (await caller.act(operation, "rollback"))["state"] == "ROLLED_BACK"
        ran = [line.split()[3] for line in (await caller.log(operation)).splitlines() if line.startswith("== ")]
        moments = ("start", "end", "rollback_start", "rollback_end")
        assert ran == [f"instantiate_{moment}:" for moment in moments]

        start, end = await recorded.do("instantiate", on_cluster(caller, cluster))
        assert [(run["machines"], run["added"], run["version"]) for run in (start, end)] == [
            (0, 2, "1.0"),
            (2, 2, "1.0"),
        ]
        other = await onboarded_cnf(user, tmp_path, modify_end, version="2.0")
        change = {"vnfdId": other, "vnfInstanceName": "n"}
        accepted = (await caller.lcm("PATCH", f"/vnf_instances/{recorded.instance_id}", change)).must(202)
        view = await caller.rest(accepted.headers["Location"].rsplit("/", 1)[-1])
        assert view["state"] == "COMPLETED", view
        shown = await user.instance(recorded.instance_id)
        assert shown["vnfdId"] == other
        runs = {name: run for name, run in shown["metadata"]["runs"].items() if name.startswith("modify")}
        expected = {"modify_information_start": "", "modify_information_end": "2.0"}
        if modify_end != "record":
            del expected["modify_information_end"]
        assert {name: run["new_version"] for name, run in runs.items()} == expected
        assert {run["version"] for run in runs.values()} == {"1.0"}

        await caller.do(recorded.instance_id, "terminate", GRACEFUL)
        start, end = await recorded.runs("terminate")
        assert [(run["machines"], run["removed"], run["version"]) for run in (start, end)] == [
            (2, 2, "2.0"),
            (0, 2, "2.0"),
        ]
        await caller.delete(recorded.instance_id)
    assert PASSWORD not in "".join((*user.heard, *v1.heard))
    await user.terminate(cluster_id)


@pytest.mark.kubeadm
async def test_a_cluster_that_a_driver_class_builds_takes_cnfs_and_is_healed_as_a_whole(
    user: User, v1: User, tmp_path: Path
) -> None:
    """SEQ-004, SEQ-041, SEQ-156, 6.7: by create_vim and delete_vim of the class; the VIM keeps its id, and gets other access data."""
    script = (SCRIPTS / "own_cluster.py").read_text(encoding="utf-8")
    vnfd_id = str(uuid.uuid4())
    package = await user.upload(scripted_cluster(tmp_path, script, vnfd_id=vnfd_id))
    assert package["onboardingState"] == "ONBOARDED", package
    assert "warnings" not in package, package
    cluster_id = await v1.create(vnfd_id)
    body = user.cluster()
    body["additionalParams"]["ssh_port"] = user.installation.lab.ssh_port
    view = await v1.do(cluster_id, "instantiate", body)
    assert "register_vim" in [step["name"] for step in view["steps"]]
    assert "read_admin" not in [step["name"] for step in view["steps"]]
    built = await user.vim_of_cluster(cluster_id)
    cnf_vnfd = await user.sample("cnf")

    cnf_id = await user.create(cnf_vnfd)
    await user.do(cnf_id, "instantiate", user.on_vim(sample_body("cnf", "instantiate"), built))
    refused = (await v1.ask(cluster_id, "heal", {"cause": "all"})).must(409)
    assert cnf_id in refused.json["detail"]
    await user.terminate(cnf_id)
    await v1.do(cluster_id, "heal", {"cause": "all"})
    healed = await user.vim_of_cluster(cluster_id)
    assert healed["vimId"] == built["vimId"]
    assert healed["interfaceInfo"]["ssl_ca_cert"] != built["interfaceInfo"]["ssl_ca_cert"]
    assert [vim["id"] for name, vim in (await user.vims()).items() if name == "own_cluster"] == [built["vimId"]]

    cnf_id = await user.create(cnf_vnfd)
    await user.do(cnf_id, "instantiate", user.on_vim(sample_body("cnf", "instantiate"), healed))
    await user.terminate(cnf_id)
    await v1.do(cluster_id, "terminate", FORCEFUL)
    await v1.delete(cluster_id)
    assert "own_cluster" not in await user.vims()
    assert user.installation.lab.machine_password not in "".join((*user.heard, *v1.heard))
