"""A CNF that is scaled, healed and changed to other packages, over both versions of the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from callers.user import DRIFT, FORCEFUL, SAMPLES, User, sample_body
from clouds.lab_process import LabControl
from clusters.masters import kubectl
from packages.ordered_cnf import comes_up_in_order_and_goes_in_reverse
from packages.package_variants import variant
from patience import until_true

OUT = {"type": "SCALE_OUT", "aspectId": "web_aspect"}
DEPLOYMENT, MORE = "Files/kubernetes/deployment.yaml", "Files/kubernetes/more.yaml"
SAMPLE_OBJECTS = {"ConfigMap/web-pages", "Deployment/web", "Service/web", "PodDisruptionBudget/web"}
NEW_OBJECTS = {"ConfigMap/web-pages", "Deployment/web", "ConfigMap/more"}
SAMPLE_FILES = [
    f"Files/kubernetes/{name}.yaml" for name in ("configmap", "deployment", "service", "poddisruptionbudget")
]
AUTOSCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 9
"""
IN = {"type": "SCALE_IN", "aspectId": "web_aspect"}


async def a_cnf(user: User, cluster_id: str) -> str:
    """Return the sample CNF, with two pods, on the cluster."""
    vim = await user.vim_of_cluster(cluster_id)
    cnf_id = await user.create(await user.sample("cnf"))
    await user.do(cnf_id, "instantiate", user.on_vim(sample_body("cnf", "instantiate"), vim))
    return cnf_id


async def pods_of(user: User, lab: LabControl, cluster_id: str, cnf_id: str) -> set[str]:
    """Return the names of the CNF's pods, after checking that cluster and instance show the same."""
    pods = (await lab.cluster_of(cluster_id))["pods"]
    there = {pod["name"] for pod in pods if cnf_id in pod["labels"].values()}
    info = (await user.instance(cnf_id))["instantiatedVnfInfo"]
    assert {one["computeResource"]["resourceId"] for one in info["vnfcResourceInfo"]} == there
    assert {one["id"] for one in info["vnfcInfo"]} == {f"VDU1-{name}" for name in there}
    return there


async def level_of(user: User, cnf_id: str) -> int:
    (one,) = (await user.instance(cnf_id))["instantiatedVnfInfo"]["scaleStatus"]
    return int(one["scaleLevel"])


async def affected(user: User, operation_id: str) -> dict[str, set[str]]:
    """Return the pods of an operation's resourceChanges, by what happened to them."""
    changes = (await user.occurrence(operation_id)).get("resourceChanges") or {}
    found: dict[str, set[str]] = {}
    for one in changes.get("affectedVnfcs", ()):
        found.setdefault(one["changeType"], set()).add(one["computeResource"]["resourceId"])
    return found


async def is_scaled(user: User, v1: User, lab: LabControl, cluster_id: str, cnf_id: str) -> None:
    """CR-033, CR-087, CR-093: out by two, in by one, to a level; beyond the aspect's bounds nothing is sent."""
    first = await pods_of(user, lab, cluster_id, cnf_id)
    view = await user.do(cnf_id, "scale", {**OUT, "numberOfSteps": 2})
    assert [step["name"] for step in view["steps"]] == ["scale_objects"]
    more = await pods_of(user, lab, cluster_id, cnf_id)
    assert (len(first), len(more), first < more, await level_of(user, cnf_id)) == (2, 4, True, 2)
    assert await affected(user, view["id"]) == {"ADDED": more - first}

    view = await v1.do(cnf_id, "scale", {**IN, "numberOfSteps": "1"})
    less = await pods_of(user, lab, cluster_id, cnf_id)
    assert (len(less), less < more, await level_of(user, cnf_id)) == (3, True, 1)
    assert await affected(user, view["id"]) == {"REMOVED": more - less}

    await user.do(cnf_id, "scale_to_level", {"instantiationLevelId": "instantiation_level_2"})
    assert (len(await pods_of(user, lab, cluster_id, cnf_id)), await level_of(user, cnf_id)) == (5, 3)
    refusals: list[tuple[str, dict[str, Any], str]] = [
        ("scale", OUT, "numberOfSteps"),
        ("scale", {**IN, "numberOfSteps": 4}, "numberOfSteps"),
        ("scale", {**OUT, "aspectId": "x"}, "web_aspect"),
        ("scale_to_level", {"scaleInfo": [{"aspectId": "web_aspect", "scaleLevel": 4}]}, "scaleInfo[0]/scaleLevel"),
        ("scale", {**IN, "additionalParams": {"wait_timeout": -1}}, "additionalParams/wait_timeout"),
    ]
    for caller in (user, v1):
        for task, body, place in refusals:
            assert place in (await caller.ask(cnf_id, task, body)).must(400).detail
        assert (
            "not stopped and started"
            in (await caller.ask(cnf_id, "operate", {"changeStateTo": "STOPPED"})).must(404).detail
        )
    await v1.do(cnf_id, "scale_to_level", {"scaleInfo": [{"aspectId": "web_aspect", "scaleLevel": "1"}]})
    assert (len(await pods_of(user, lab, cluster_id, cnf_id)), await level_of(user, cnf_id)) == (3, 1)


async def is_healed(user: User, v1: User, lab: LabControl, cluster_id: str, cnf_id: str) -> None:
    """CR-034: named pods, by both forms of their ids, then everything; the number of pods is that of the scale level."""
    first, level = await pods_of(user, lab, cluster_id, cnf_id), await level_of(user, cnf_id)
    ill, other = sorted(first)[:2]
    assert "has no VNFC gone" in (await user.ask(cnf_id, "heal", {"vnfcInstanceId": [ill, "gone"]})).must(400).detail
    view = await user.do(cnf_id, "heal", {"vnfcInstanceId": [f"VDU1-{ill}"]})
    assert [step["name"] for step in view["steps"]] == ["heal_objects"]
    now = await pods_of(user, lab, cluster_id, cnf_id)
    assert (first - now, len(now)) == ({ill}, len(first))
    assert await affected(user, view["id"]) == {"REMOVED": {ill}, "ADDED": now - first}
    await v1.do(cnf_id, "heal", {"vnfcInstanceId": [other], "cause": "ill"})
    before = await pods_of(user, lab, cluster_id, cnf_id)
    assert now - before == {other}
    for caller in (v1, user):
        view = await caller.do(cnf_id, "heal", {})
        assert [step["name"] for step in view["steps"]] == ["delete_objects", "apply_objects"]
        after = await pods_of(user, lab, cluster_id, cnf_id)
        assert (after & before, len(after), await level_of(user, cnf_id)) == (set(), len(first), level)
        assert await affected(user, view["id"]) == {"REMOVED": before, "ADDED": after}
        before = after


async def is_followed(user: User, lab: LabControl, cluster_id: str, cnf_id: str) -> None:
    """CR-120a: a pod that others delete is replaced in the instance without an operation; the others keep their ids.

    While the new one crashes, the instance is in the list of those with a problem.
    """
    first, before = await pods_of(user, lab, cluster_id, cnf_id), await user.instance(cnf_id)
    operations = (await user.lcm("GET", f"/vnf_lcm_op_occs?filter=(eq,vnfInstanceId,{cnf_id})")).json
    gone = sorted(first)[0]
    listed = f"/kubevnfm/v1/instances?problem=true&vnfdId={before['vnfdId']}"

    async def problems() -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await user.call("GET", listed)).must(200).json["items"]
        return items

    async def is_ill() -> bool:
        return bool(await problems())

    async def is_well() -> bool:
        return not await problems()

    assert await is_well()
    async with lab.fault("program", "container nginx*", status=500, message="no license"):
        await kubectl(user.installation.lab, await lab.master_of(cluster_id), f"delete pod {gone}")
        await until_true(is_ill)
        (row,) = await problems()
    assert (row["id"], row["health"]) == (cnf_id, "problem")
    assert row["text"].startswith("Pod web-")
    assert row["text"].endswith("ends again and again with exit code 1")
    await until_true(is_well)

    async def shown() -> set[str]:
        info = (await user.instance(cnf_id))["instantiatedVnfInfo"]
        return {one["id"] for one in info["vnfcResourceInfo"]}

    async def is_replaced() -> bool:
        now = await shown()
        return gone not in now and len(now) == len(first)

    await until_true(is_replaced)
    now = await pods_of(user, lab, cluster_id, cnf_id)
    assert first - now == {gone}
    assert (await user.lcm("GET", f"/vnf_lcm_op_occs?filter=(eq,vnfInstanceId,{cnf_id})")).json == operations
    after = await user.instance(cnf_id)
    assert after["instantiatedVnfInfo"]["scaleStatus"] == before["instantiatedVnfInfo"]["scaleStatus"]
    assert f"has no VNFC {gone}" in (await user.ask(cnf_id, "heal", {"vnfcInstanceId": [gone]})).must(400).detail


async def is_repaired(user: User, v1: User, lab: LabControl, cluster_id: str, cnf_id: str) -> None:
    """CR-121: a person deletes the Deployment and changes a ConfigMap; the mark comes, and goes with the repair."""
    first, kinds = await pods_of(user, lab, cluster_id, cnf_id), await kinds_of(lab, cluster_id, cnf_id)
    master = await lab.master_of(cluster_id)
    await kubectl(user.installation.lab, master, "delete deployment web")
    mark = await user.drifted(cnf_id, "INCOMPLETE")
    assert (mark["objects"][0]["name"], mark["objects"][0]["what"], set(mark["vnfc_ids"])) == ("web", "missing", first)
    assert await v1.drifted(cnf_id, "INCOMPLETE") == mark
    for task, body in (("scale", OUT), ("heal", {"vnfcInstanceId": [sorted(first)[0]]})):
        assert "additionalParams.repair: true" in (await v1.ask(cnf_id, task, body)).must(409).detail
    await kubectl(
        user.installation.lab,
        master,
        """patch configmap web-pages --type merge -p '{"data":{"index.html":"theirs"}}'""",
    )
    view = await user.do(cnf_id, "heal", {"additionalParams": {"repair": True}})
    assert [step["name"] for step in view["steps"]] == ["repair_objects"]
    assert DRIFT not in (await user.instance(cnf_id)).get("metadata", {})
    after = await pods_of(user, lab, cluster_id, cnf_id)
    assert (after & first, len(after), await kinds_of(lab, cluster_id, cnf_id)) == (set(), len(first), kinds)
    assert await affected(user, view["id"]) == {"REMOVED": first, "ADDED": after}
    assert (await user.occurrence(view["id"]))["resourceChanges"]["metadata"] == {"kubevnfm_repaired": 2}
    assert "theirs" not in await kubectl(user.installation.lab, master, "get configmap web-pages -o yaml")

    # Changed only: no pod is replaced.
    await kubectl(
        user.installation.lab,
        master,
        """patch configmap web-pages --type merge -p '{"data":{"index.html":"theirs"}}'""",
    )
    assert (await user.drifted(cnf_id, "CHANGED"))["objects"][0]["name"] == "web-pages"
    await v1.do(cnf_id, "heal", {"additionalParams": {"repair": True}})
    assert DRIFT not in (await user.instance(cnf_id)).get("metadata", {})
    assert await pods_of(user, lab, cluster_id, cnf_id) == after


async def other_package(user: User, folder: Path, image: str) -> str:
    """Upload another version of the sample: its web server has this image, and it has one more ConfigMap."""
    deployment = (SAMPLES / "cnf" / DEPLOYMENT).read_text(encoding="utf-8").replace("nginx:1.27-alpine", image)
    vnfd_id = str(uuid4())
    files = {DEPLOYMENT: deployment, MORE: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"}
    await user.upload(variant(folder, vnfd_id=vnfd_id, files=files))
    return vnfd_id


async def images_of(lab: LabControl, cluster_id: str, cnf_id: str) -> set[str]:
    pods = (await lab.cluster_of(cluster_id))["pods"]
    return {image for pod in pods if cnf_id in pod["labels"].values() for image in pod["images"]}


async def kinds_of(lab: LabControl, cluster_id: str, cnf_id: str) -> set[str]:
    """Return kind and name of the CNF's objects."""
    objects = (await lab.cluster_of(cluster_id))["objects"]
    mine = [place.split("/") for place, one in objects.items() if cnf_id in one["labels"].values()]
    return {f"{kind}/{name}" for kind, _, name in mine}


async def is_replaced(user: User, lab: LabControl, cluster_id: str, cnf_id: str, folder: Path) -> None:
    """CR-022, CR-035, CR-094: images of a VDU, then all objects, then a change that fails and is rolled back."""
    first, level = await pods_of(user, lab, cluster_id, cnf_id), await level_of(user, cnf_id)
    rolling = {
        "upgrade_type": "RollingUpdate",
        "vdu_params": [{"vdu_id": "VDU1"}],
        "lcm-kubernetes-def-files": [DEPLOYMENT],
    }
    vnfd_id = await other_package(user, folder, "nginx:1.28-alpine")
    view = await user.do(cnf_id, "change_vnfpkg", {"vnfdId": vnfd_id, "additionalParams": rolling})
    assert [step["name"] for step in view["steps"]] == ["change_images"]
    second = await pods_of(user, lab, cluster_id, cnf_id)
    assert (second & first, len(second), await images_of(lab, cluster_id, cnf_id)) == (
        set(),
        len(first),
        {"nginx:1.28-alpine"},
    )
    assert await kinds_of(lab, cluster_id, cnf_id) == SAMPLE_OBJECTS
    assert (await user.instance(cnf_id))["vnfdId"] == vnfd_id

    vnfd_id = await other_package(user, folder, "nginx:1.29-alpine")
    everything = {"lcm-kubernetes-def-files": ["Files/kubernetes/configmap.yaml", DEPLOYMENT, MORE]}
    view = await user.do(cnf_id, "change_vnfpkg", {"vnfdId": vnfd_id, "additionalParams": everything})
    assert [step["name"] for step in view["steps"]] == ["replace_objects"]
    third = await pods_of(user, lab, cluster_id, cnf_id)
    assert (third & second, len(third), await images_of(lab, cluster_id, cnf_id)) == (
        set(),
        len(first),
        {"nginx:1.29-alpine"},
    )
    assert await kinds_of(lab, cluster_id, cnf_id) == NEW_OBJECTS
    before = await user.instance(cnf_id)
    assert (before["vnfdId"], await level_of(user, cnf_id)) == (vnfd_id, level)
    assert await affected(user, view["id"]) == {"REMOVED": second, "ADDED": third}

    bad = await other_package(user, folder, "nginx:bad")
    less = {"lcm-kubernetes-def-files": [DEPLOYMENT, "Files/kubernetes/service.yaml"], "wait_timeout": 4}
    async with lab.fault("program", "image nginx:bad", effect="hang"):
        operation = await user.start(cnf_id, "change_vnfpkg", {"vnfdId": bad, "additionalParams": less})
        assert (await user.rest(operation))["state"] == "FAILED_TEMP"
        assert "Deployment default/web" in (await user.occurrence(operation))["error"]["detail"]
        assert await kinds_of(lab, cluster_id, cnf_id) == {*NEW_OBJECTS, "Service/web"}
        assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    assert await kinds_of(lab, cluster_id, cnf_id) == NEW_OBJECTS
    assert await images_of(lab, cluster_id, cnf_id) == {"nginx:1.29-alpine"}
    assert len(await pods_of(user, lab, cluster_id, cnf_id)) == len(first)
    now = await user.instance(cnf_id)
    assert (now["vnfdId"], now["instantiatedVnfInfo"]["metadata"]) == (
        vnfd_id,
        before["instantiatedVnfInfo"]["metadata"],
    )


async def is_autoscaled(user: User, lab: LabControl, cluster_id: str, folder: Path) -> None:
    """MC-114: instantiate, the autoscaler scales, a change of package, a scale out that is refused and rolled back."""
    scaler = "Files/kubernetes/autoscaler.yaml"
    files = [*SAMPLE_FILES, scaler]
    master = await lab.master_of(cluster_id)

    async def package(image: str) -> str:
        vnfd_id = str(uuid4())
        text = (SAMPLES / "cnf" / DEPLOYMENT).read_text(encoding="utf-8").replace("nginx:1.27-alpine", image)
        await user.upload(variant(folder, vnfd_id=vnfd_id, files={DEPLOYMENT: text, scaler: AUTOSCALER}))
        return vnfd_id

    cnf_id = await user.create(await package("nginx:1.27-alpine"))
    body = sample_body("cnf", "instantiate")
    body["additionalParams"] = {**body["additionalParams"], "lcm-kubernetes-def-files": files}
    await user.do(cnf_id, "instantiate", user.on_vim(body, await user.vim_of_cluster(cluster_id)))
    raised = """patch horizontalpodautoscaler web --type merge -p '{"spec":{"minReplicas":5}}'"""
    await kubectl(user.installation.lab, master, raised)

    async def pods() -> int:
        there = (await lab.cluster_of(cluster_id))["pods"]
        return sum(cnf_id in pod["labels"].values() for pod in there)

    async def is_raised() -> bool:
        return await pods() == 5

    await until_true(is_raised)
    newer = await package("nginx:1.28-alpine")
    parameters = {"upgrade_type": "RollingUpdate", "lcm-kubernetes-def-files": files}
    await user.do(cnf_id, "change_vnfpkg", {"vnfdId": newer, "additionalParams": parameters})
    assert (len(await pods_of(user, lab, cluster_id, cnf_id)), await level_of(user, cnf_id)) == (5, 0)
    operation = await user.start(cnf_id, "scale", OUT)
    assert (await user.rest(operation))["state"] == "FAILED_TEMP"
    error = (await user.occurrence(operation))["error"]
    assert (error["status"], "HorizontalPodAutoscaler default/web (1 to 9)" in error["detail"]) == (422, True)
    assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    assert (len(await pods_of(user, lab, cluster_id, cnf_id)), await level_of(user, cnf_id)) == (5, 0)
    # The autoscaler, which the test has changed, may have been found so by now; the number that it has set is no drift.
    drift = (await user.instance(cnf_id)).get("metadata", {}).get(DRIFT, {})
    assert "Deployment" not in drift.get("reason", "")
    await user.do(cnf_id, "terminate", FORCEFUL)
    await user.delete(cnf_id)


async def findings_are_shown(user: User, cluster_id: str, folder: Path) -> None:
    """CR-126: by default a CNF gets the network of the nodes, and the operation's view says so."""
    text = (SAMPLES / "cnf" / DEPLOYMENT).read_text(encoding="utf-8")
    bold = text.replace("      containers:\n", "      hostNetwork: true\n      containers:\n")
    vnfd_id = str(uuid4())
    await user.upload(variant(folder, vnfd_id=vnfd_id, files={DEPLOYMENT: bold}))
    cnf_id = await user.create(vnfd_id)
    on_vim = user.on_vim(sample_body("cnf", "instantiate"), await user.vim_of_cluster(cluster_id))
    view = await user.do(cnf_id, "instantiate", on_vim)
    [task] = [task for task in view["tasks"] if task["task"] == "policy"]
    assert task["message"].endswith("hostNamespaces: Deployment default/web: spec.template.spec.hostNetwork (true)")
    await user.do(cnf_id, "terminate", FORCEFUL)
    await user.delete(cnf_id)


async def an_image_that_is_not_pulled_is_named(user: User, lab: LabControl, cluster_id: str) -> None:
    """CR-025: while the step waits for its pods; the operation continues by itself once the registry has the image."""
    cnf_id = await user.create(await user.sample("cnf"))
    on_vim = user.on_vim(sample_body("cnf", "instantiate"), await user.vim_of_cluster(cluster_id))
    async with lab.fault("program", "image nginx*", status=404, message="not found"):
        operation = await user.start(cnf_id, "instantiate", on_vim)
        view: dict[str, Any] = {}

        async def is_named() -> bool:
            view.update((await user.call("GET", f"/kubevnfm/v1/operations/{operation}")).must(200).json)
            return "cause" in view

        await until_true(is_named)
    assert (view["cause"]["code"], view["cause"]["isWait"]) == ("image-not-pulled", True)
    assert view["cause"]["text"].startswith("The image nginx:1.27-alpine cannot be pulled: ")
    assert view["cause"]["object"]["name"].startswith("web-")
    assert view["cause"]["object"].items() >= {"kind": "Pod", "namespace": "default"}.items()
    assert [each["task"] for each in view["next"]] == ["wait", "cancel"]
    assert (await user.rest(operation))["state"] == "COMPLETED"
    await user.do(cnf_id, "terminate", FORCEFUL)
    await user.delete(cnf_id)


async def test_a_cnf_is_changed_and_shows_the_pods_that_run(
    user: User, v1: User, lab: LabControl, tmp_path: Path
) -> None:
    """CR-022, CR-033, CR-034, CR-035, CR-087, CR-093, CR-121, CR-120a, MC-013, MC-014, MC-016, MC-020, MC-022, MC-025, MC-029, MC-030, MC-031, MC-114, API-055, API-056, API-154."""
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", user.cluster())
    cnf_id = await a_cnf(user, cluster_id)
    await is_scaled(user, v1, lab, cluster_id, cnf_id)
    await is_healed(user, v1, lab, cluster_id, cnf_id)
    await is_followed(user, lab, cluster_id, cnf_id)
    await is_repaired(user, v1, lab, cluster_id, cnf_id)
    await is_replaced(user, lab, cluster_id, cnf_id, tmp_path)
    await user.do(cnf_id, "terminate", FORCEFUL)
    await user.delete(cnf_id)
    await findings_are_shown(user, cluster_id, tmp_path)
    await an_image_that_is_not_pulled_is_named(user, lab, cluster_id)
    await is_autoscaled(user, lab, cluster_id, tmp_path)
    await comes_up_in_order_and_goes_in_reverse(user, lab, cluster_id, tmp_path)
    await user.terminate(cluster_id)
