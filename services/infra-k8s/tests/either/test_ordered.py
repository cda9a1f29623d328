"""Artifacts in the order that their package gives them (multicloud.md MC-011 to MC-021, MC-031)."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from kubevnfm_events.objects import ObjectsApplied, UpdateObjects
from kubevnfm_infra_k8s.domain.errors import FieldConflict, ObjectFailed, ObjectRefused, ObjectsNotReady, ObjectsRefused
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource
from kubevnfm_kit.errors import Unprocessable, VnfmError
from kubevnfm_lab.faults import CallLedger
from kubevnfm_secrets import Secret
from packages.kubernetes_objects import a_deployment, a_job, a_pod, an_object, things_of
from patience import until_true
from worlds.link_world import GivenRegionLabels

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
ORDER = "artifact-order.yaml"
SCHEMA = "values.schema.json"


async def apply(ground: Any, artifacts: str, files: Mapping[str, Any], **more: Any) -> ObjectsApplied:
    """Apply a package with these artifacts, as an order lists them, in the namespace of the test."""
    ground.instances.add(ground.namespace)
    ground.site.step = "apply"
    more = {"instance": ground.namespace, "namespace": ground.namespace, **more}
    done: ObjectsApplied = await ground.site.apply(
        {ORDER: f"artifacts:\n{artifacts}", **files},
        def_files=[each for each in files if each != SCHEMA],
        order_artifact=ORDER,
        **more,
    )
    return done


def a_map(name: str, **data: str) -> dict[str, Any]:
    return an_object("ConfigMap", name, data=data)


def things_with_status(ground: Any) -> tuple[str, dict[str, Any]]:
    """Return the version of a custom kind whose status others write, and files with its definition, an object and one after it."""
    definition = things_of(f"{ground.namespace}.example")
    definition["spec"]["versions"][0]["subresources"] = {"status": {}}
    members = {"phase": "string", "seen": "boolean", "observedGeneration": "integer"}
    properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["status"] = {"type": "object", "properties": {name: {"type": kind} for name, kind in members.items()}}
    version = f"{ground.namespace}.example/v1"
    thing = an_object("Thing", "t", api_version=version)
    return version, {"crd.yaml": definition, "t.yaml": thing, "z.yaml": a_map("z")}


async def version(ground: Any, name: str) -> int:
    """Return the place of an object in the sequence of all writes of the cluster."""
    found = await ground.shown("v1", "ConfigMap", name)
    return int(found["metadata"]["resourceVersion"])


async def is_ending(ground: Any, name: str) -> bool:
    found = await ground.shown("v1", "ConfigMap", name)
    return found is not None and "deletionTimestamp" in found["metadata"]


async def test_a_lower_priority_number_is_applied_first_and_deleted_last(ground: Any) -> None:
    """MC-013, MC-014: whatever the order of the files; an object is deleted when all that came after it are gone."""
    files = {f"{name}.yaml": a_map(name) for name in ("c", "a", "b")}
    order = (
        "- {file: c.yaml, priority: 30}\n- {file: a.yaml, priority: 1}\n- {file: b.yaml, priority: 2, wait: exists}\n"
    )
    await apply(ground, order, files)
    versions = {name: await version(ground, name) for name in "abc"}
    assert sorted(versions, key=versions.__getitem__) == ["a", "b", "c"]
    for name in "bc":
        held = {"metadata": {"finalizers": ["example.org/held"]}}
        await ground.as_other("v1", "ConfigMap", name, held)
    deleting = asyncio.create_task(ground.delete())
    for name, before in (("c", "b"), ("b", "a")):
        await until_true(partial(is_ending, ground, name))
        assert not await is_ending(ground, before)
        await ground.as_other("v1", "ConfigMap", name, {"metadata": {"finalizers": None}})
    assert (await deleting).count == 3
    assert await ground.shown("v1", "ConfigMap", "a") is None


async def test_the_next_priority_waits_until_the_objects_before_are_ready(ground: Any) -> None:
    """MC-013, MC-020: a wait that fails names object and priority; what comes after was not sent, what exists is shown."""
    web = a_deployment(pod=a_pod(annotations=ground.fate("stuck")), replicas=1)
    files = {"a.yaml": a_map("a"), "web.yaml": web, "z.yaml": a_map("z")}
    order = "- {file: a.yaml}\n- {file: web.yaml, priority: 1, timeout: 2}\n- {file: z.yaml, priority: 2}\n"
    with pytest.raises(ObjectsNotReady) as caught:
        await apply(ground, order, files)
    assert f"priority 2 of 3: Deployment {ground.namespace}/web" in str(caught.value)
    assert caught.value.remains is not None
    assert {each.name for each in caught.value.remains.objects} >= {"a", "web"}
    assert await ground.shown("v1", "ConfigMap", "a") is not None
    assert await ground.shown("v1", "ConfigMap", "z") is None
    said = [each.message for each in ground.site.progress]
    assert "priority 1 of 3: is done" in said
    (waiting,) = [each for each in said if each.startswith("priority 2 of 3: waits since ")]
    assert waiting.endswith(f"Z for Deployment {ground.namespace}/web")
    # A rollback removes what was created.
    await ground.delete()
    for kind, name in (("ConfigMap", "a"), ("Deployment", "web")):
        assert await ground.shown("apps/v1" if kind == "Deployment" else "v1", kind, name) is None


@pytest.mark.parametrize("wait", ["none", "exists"])
async def test_objects_that_need_not_be_ready_hold_nothing(ground: Any, wait: str) -> None:
    """MC-011: neither the next priority nor the end of the operation."""
    web = a_deployment(pod=a_pod(annotations=ground.fate("stuck")), replicas=1)
    order = f"- {{file: web.yaml, wait: {wait}}}\n- {{file: z.yaml, priority: 1, wait: {wait}}}\n"
    done = await apply(ground, order, {"web.yaml": web, "z.yaml": a_map("z")})
    assert [each.name for each in done.objects] == ["web", "z"]


async def test_a_wait_may_name_a_path_of_the_object(ground: Any) -> None:
    """MC-011: without a status it does not hold, and the failure says what was awaited."""
    version, files = things_with_status(ground)
    order = (
        "- {file: crd.yaml}\n- {file: t.yaml, priority: 1, timeout: %s, wait: {jsonpath: '{.status.phase}', value: Up}}\n"
        "- {file: z.yaml, priority: 2}\n"
    )
    with pytest.raises(ObjectsNotReady, match=r"priority 2 of 3: Thing .*/t: waits for \{\.status\.phase\} to be Up"):
        await apply(ground, order % 1, files)
    assert await ground.shown("v1", "ConfigMap", "z") is None
    applying = asyncio.create_task(apply(ground, order % 100, files, attempt=2))
    await ground.as_other(version, "Thing", "t", {"status": {"phase": "Up"}}, at="/status")
    assert [each.name for each in (await applying).objects][1:] == ["t", "z"]


async def test_the_next_priority_waits_for_an_expression(ground: Any) -> None:
    """MC-011: a missing field means not yet; no verdict on a generation that was not observed; `failed` ends the wait at once."""
    version, files = things_with_status(ground)
    wait = "{cel: \"object.status.phase == 'Up'\", failed: \"object.status.phase == 'Broken'\"}"
    order = (
        f"- {{file: crd.yaml}}\n- {{file: t.yaml, priority: 1, timeout: %s, wait: {wait}}}\n"
        "- {file: z.yaml, priority: 2}\n"
    )
    for attempt, (status, reason) in enumerate(
        [
            ({}, "waits for object.status.phase == 'Up': it has no status"),
            ({"seen": True}, "waits for object.status.phase == 'Up': .*Key not found in map : \"phase\""),
            ({"phase": "Broken", "observedGeneration": 0}, "generation 0 of 1 observed"),
        ],
        start=1,
    ):
        if status:
            await ground.as_other(version, "Thing", "t", {"status": status}, at="/status")
        with pytest.raises(ObjectsNotReady, match=rf"priority 2 of 3: Thing .*/t: {reason}"):
            await apply(ground, order % 1, files, attempt=attempt)
    applying = asyncio.create_task(apply(ground, order % 100, files, attempt=4))
    await ground.as_other(version, "Thing", "t", {"status": {"observedGeneration": 1}}, at="/status")
    with pytest.raises(ObjectFailed, match=r"/t: failed, as its order says: object\.status\.phase == 'Broken'"):
        await applying
    assert await ground.shown("v1", "ConfigMap", "z") is None
    applying = asyncio.create_task(apply(ground, order % 100, files, attempt=5))
    await ground.as_other(version, "Thing", "t", {"status": {"phase": "Up"}}, at="/status")
    assert [each.name for each in (await applying).objects][1:] == ["t", "z"]


async def test_an_artifact_starts_when_its_own_predecessors_are_ready(ground: Any) -> None:
    """MC-013, MC-020: whatever else is not ready; no other waits for it; a later call continues, and an error names the stage."""
    stuck = a_deployment(pod=a_pod(annotations=ground.fate("stuck")), replicas=1)
    late = an_object("ConfigMap", "late", metadata={"annotations": {"kubevnfm.io/after": "Deployment/stuck"}})
    files: dict[str, Any] = {name: a_map(name.removesuffix(".yaml")) for name in ("a.yaml", "b.yaml", "next.yaml")}
    files |= {"stuck.yaml": {**stuck, "metadata": {"name": "stuck"}}, "c.yaml": [a_map("c"), late]}
    order = (
        "- {file: stuck.yaml, timeout: 3}\n- {file: a.yaml}\n- {file: b.yaml}\n"
        "- {file: c.yaml, after: [a.yaml]}\n- {file: next.yaml, priority: 1}\n"
        "objects:\n- {object: {kind: ConfigMap, name: b}, after: [ConfigMap/c]}\n"
    )
    with pytest.raises(ObjectsNotReady, match=r"^priority 1 of 2: Deployment \S+/stuck: "):
        await apply(ground, order, files)
    assert await version(ground, "a") < await version(ground, "c") < await version(ground, "b")
    for name in ("late", "next"):
        assert await ground.shown("v1", "ConfigMap", name) is None
    said = [each.message for each in ground.site.progress]
    of_b = said.index(f"after ConfigMap {ground.namespace}/c: is done")
    assert said.index("after a.yaml: is done") < of_b
    assert "priority 1 of 2: is done" not in said


async def test_objects_are_deleted_when_all_that_came_after_them_are_gone(ground: Any) -> None:
    """MC-014: backwards along the same graph, also against the priorities."""
    files = {f"{name}.yaml": a_map(name) for name in "abc"}
    order = "- {file: a.yaml, priority: 9}\n- {file: b.yaml, after: [a.yaml]}\n- {file: c.yaml, after: [b.yaml]}\n"
    await apply(ground, order, files)
    for name in "bc":
        await ground.as_other("v1", "ConfigMap", name, {"metadata": {"finalizers": ["example.org/held"]}})
    deleting = asyncio.create_task(ground.delete())
    for name, before in (("c", "b"), ("b", "a")):
        await until_true(partial(is_ending, ground, name))
        assert not await is_ending(ground, before)
        await ground.as_other("v1", "ConfigMap", name, {"metadata": {"finalizers": None}})
    assert (await deleting).count == 3


async def test_a_field_of_another_manager_is_not_taken_if_the_order_says_so(ground: Any) -> None:
    """MC-106b: by the order or by an annotation; what this instance has patched itself is no conflict."""
    noted = an_object("ConfigMap", "b", data={"x": "1"}, metadata={"annotations": {"kubevnfm.io/conflict": "abort"}})
    files = {"a.yaml": a_map("a", x="1"), "b.yaml": noted, "c.yaml": a_map("c", x="1")}
    order = "- {file: a.yaml, conflict: abort}\n- {file: b.yaml}\n- {file: c.yaml, priority: 1}\n"
    await apply(ground, order, files)
    for name in "abc":
        await ground.as_other("v1", "ConfigMap", name, {"data": {"x": "2"}})
    with pytest.raises(
        FieldConflict, match=r"^priority 1 of 2: \.data\.x of ConfigMap [ab] is managed by kubectl-edit$"
    ):
        await apply(ground, order, files, attempt=2)
    for name in "ab":
        assert (await ground.shown("v1", "ConfigMap", name))["data"] == {"x": "2"}
        await ground.as_other("v1", "ConfigMap", name, {"data": {"x": "3"}}, manager="kubevnfm")
    await apply(ground, order, files, attempt=3)
    for name in "abc":
        assert (await ground.shown("v1", "ConfigMap", name))["data"] == {"x": "1"}


async def test_a_restart_takes_no_field_of_another_manager_if_the_order_says_so(ground: Any) -> None:
    """MC-106b: also where only a patch is sent."""

    def files(image: str) -> dict[str, Any]:
        web = a_deployment(replicas=1)
        web["spec"]["template"]["spec"]["containers"][0]["image"] = image
        return {"web.yaml": web}

    order = "- {file: web.yaml, conflict: abort}\n"
    await apply(ground, order, files("nginx:1"))
    container = {"name": (await images(ground))[0][0], "image": "nginx:7"}
    template = {"spec": {"template": {"spec": {"containers": [container]}}}}
    await ground.as_other("apps/v1", "Deployment", "web", template)
    site = ground.site
    site.step = "update"
    command = UpdateObjects(
        vnf_instance_id=ground.namespace,
        package=site.packages.add({ORDER: f"artifacts:\n{order}", **files("nginx:2")}, package_id="p-after"),
        vim=site.vim,
        def_files=("web.yaml",),
        before=site.packages.named(f"p-{ground.namespace}"),
        namespace=ground.namespace,
        order_artifact=ORDER,
    )
    with pytest.raises(FieldConflict, match="image of Deployment web is managed by kubectl-edit"):
        await site.handlers.update_objects(command, site.context(operation="op2"))
    assert (await images(ground))[0][1] == "nginx:7"


async def images(ground: Any) -> list[tuple[str, str]]:
    """Return the names and images of the containers of the Deployment."""
    found = await ground.shown("apps/v1", "Deployment", "web")
    return [(each["name"], each["image"]) for each in found["spec"]["template"]["spec"]["containers"]]


async def test_a_refusal_names_its_priority(ground: Any) -> None:
    """MC-020; MC-021: the place where it has stopped is stored, although that happens beside the priority that fails."""
    bad = an_object("Service", "bad", spec={"ports": [{"port": 0}]})
    order = "- {file: a.yaml}\n- {file: bad.yaml, priority: 5}\n"
    group = f"{ground.namespace}.example"
    first = [things_of(group), an_object("Thing", "t", api_version=f"{group}/v1"), a_map("a")]
    with pytest.raises(ObjectRefused, match=r"^priority 2 of 2: Service .*bad"):
        # Thing is not served yet, so there is no dry run of the whole set before.
        await apply(ground, order, {"a.yaml": first, "bad.yaml": bad})
    shown = await ground.shown("v1", "ConfigMap", "a")
    stored = await ground.site.handlers.releases.get(ground.namespace)
    assert stored.stages.ended == 1
    assert shown["metadata"]["uid"] in {each.uid for each in stored.entries}


async def test_a_call_continues_with_the_priority_where_the_last_one_stopped(ground: Any, ledger: CallLedger) -> None:
    """MC-021: a wait occupies no worker, and nothing is made twice; another attempt begins with the first priority."""
    ground.site = ground.site.with_changes(wait_s=0.05)
    files = {"a.yaml": a_map("a"), "web.yaml": a_deployment(), "z.yaml": a_map("z")}
    order = "".join(f"- {{file: {name}, priority: {n}}}\n" for n, name in enumerate(files))
    first = await apply(ground, order, files)
    again = await apply(ground, order, files)
    assert again == first
    calls = {each["verb"]: each["count"] for each in ledger.calls() if each["part"] == "kubernetes"}
    if calls:  # the lab counts
        # A dry run, and one apply.
        assert (calls["patch configmaps"], calls["patch deployments"]) == (4, 2)
    assert await apply(ground, order, files, attempt=2) == first


async def test_priorities_that_end_at_once_are_stored_and_shown_together(ground: Any) -> None:
    """MC-020, MC-021: not those with a Job, which a repeat after a crash could make again when it is gone."""
    files: dict[str, Any] = {f"{number:02}.yaml": a_map(f"c{number}") for number in range(24)}
    order = "".join(f"- {{file: {name}, priority: {n}}}\n" for n, name in enumerate(files))
    begun = time.monotonic()
    await apply(ground, order, files)
    half_seconds = int((time.monotonic() - begun) / 0.5)
    said = [each.message for each in ground.site.progress if "is done" in each.message]
    assert said[-1] == "priority 24 of 24: is done"
    assert len(said) <= 3 + 2 * half_seconds
    stored = await ground.site.handlers.releases.get(ground.namespace)
    # Before the check, with the first priority, and at the end.
    assert stored.revision <= 3 + half_seconds
    job = {"job.yaml": a_job("once", ttlSecondsAfterFinished=600), "z.yaml": a_map("z")}
    order = "- {file: job.yaml, wait: exists}\n- {file: z.yaml, priority: 1}\n"
    await apply(ground, order, job, instance=f"{ground.namespace}-jobs")
    jobs = await ground.site.handlers.releases.get(f"{ground.namespace}-jobs")
    # The fourth says that the Job, if it is gone, has ended.
    assert jobs.revision == 4


async def test_a_call_that_is_cancelled_anywhere_makes_nothing_twice(ground: Any, faults: Any) -> None:
    """MC-021."""
    files = {f"{name}.yaml": a_map(name) for name in "abcd"}
    order = (
        "- {file: a.yaml}\n- {file: b.yaml}\n- {file: c.yaml, priority: 1}\n- {file: d.yaml, after: [ConfigMap/c]}\n"
    )
    for after in range(0, 24, 2):
        hang = faults.add(part="kubernetes", effect="hang", after=after)
        task = asyncio.create_task(apply(ground, order, files))
        await asyncio.wait({task}, timeout=0.2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        faults.remove(hang.fault_id)
    done = await apply(ground, order, files)
    assert [each.name for each in done.objects] == list("abcd")
    assert {each.uid for each in done.objects} == {
        (await ground.shown("v1", "ConfigMap", name))["metadata"]["uid"] for name in "abcd"
    }
    versions = {name: await version(ground, name) for name in "abcd"}
    assert max(versions["a"], versions["b"]) < versions["c"] < versions["d"]


async def test_a_change_of_package_follows_the_order_of_the_new_one(
    ground: Any, autoscaler: Callable[..., Body]
) -> None:
    """MC-013, MC-114: what it lacks is deleted, and a number of replicas that an autoscaler had is ours again."""
    web = {"web.yaml": a_deployment(replicas=1)}
    order = "- {file: web.yaml, priority: 1}\n- {file: h.yaml, priority: 2}\n- {file: a.yaml}\n"
    await apply(ground, order, {**web, "h.yaml": autoscaler("web"), "a.yaml": a_map("a")})
    await ground.scale_as_other("web", 3, manager="kube-controller-manager")
    files = {**web, "z.yaml": a_map("z"), "x.yaml": a_map("x")}
    order = "artifacts:\n- {file: web.yaml, priority: 2}\n- {file: z.yaml}\n- {file: x.yaml, priority: 1}\n"
    await ground.site.replace(
        {ORDER: order, **files}, def_files=list(files), order_artifact=ORDER, instance=ground.namespace,
        namespace=ground.namespace,
    )  # fmt: skip
    assert await version(ground, "z") < await version(ground, "x")
    assert (await ground.shown("apps/v1", "Deployment", "web"))["spec"]["replicas"] == 1
    assert await ground.shown("v1", "ConfigMap", "a") is None
    assert (await ground.delete()).count == 3


async def test_a_job_of_an_earlier_priority_runs_once(ground: Any) -> None:
    """CR-029, MC-013: also if it was collected before a later priority has failed and is retried."""
    web = a_deployment(pod=a_pod(annotations=ground.fate("stuck")), replicas=1)
    files = {"job.yaml": a_job("once", ttlSecondsAfterFinished=0), "web.yaml": web}
    order = "- {file: job.yaml}\n- {file: web.yaml, priority: 1, timeout: 1}\n"
    uids: set[str] = set()
    for attempt in (1, 2):
        with pytest.raises(ObjectsNotReady, match="priority 2 of 2"):
            await apply(ground, order, files, attempt=attempt)
        release = await ground.site.handlers.releases.get(ground.namespace)
        uids |= {each.uid for each in release.entries if each.key.name == "once"}

        async def is_collected() -> bool:
            return await ground.shown("batch/v1", "Job", "once") is None

        await until_true(is_collected)
    assert len(uids) == 1


async def test_values_are_filled_in_and_secret_ones_stay_secret(ground: Any) -> None:
    """MC-022, MC-025, MC-029, MC-030: also an error of the API server does not show them."""
    files = {
        SCHEMA: '{"properties": {"db": {"default": {"port": 1}}, "level": {"default": "of the schema"}}}',
        "a.yaml": an_object("ConfigMap", "$name", data={"port": "is ${db.port}", "level": "$level"}),
        "s.yaml": an_object("Secret", "s", stringData={"key": "$key"}),
        "bad.yaml": an_object("Secret", "x", type="Opaque", data={"key": "$key"}),
    }
    order = (
        "- {file: a.yaml}\n- {file: s.yaml, priority: 1}\n- {file: bad.yaml, priority: 2}\n"
        "values: {name: default, db: {port: 5432}}\n"
    )
    values = {"name": "given", "key": Secret("open!sesame")}
    with pytest.raises(VnfmError, match="Secret") as caught:
        await apply(ground, order, files, values=values)
    assert "sesame" not in str(caught.value)
    files.pop("bad.yaml")
    order = order.replace("- {file: bad.yaml, priority: 2}\n", "")
    await apply(ground, order, files, values=values, operation="op9")
    found = await ground.shown("v1", "ConfigMap", "given")
    assert found["data"] == {"port": "is 5432", "level": "of the schema"}
    assert (await ground.shown("v1", "Secret", "s"))["data"]["key"] == "b3BlbiFzZXNhbWU="
    with pytest.raises(Unprocessable, match="key is secret"):
        await apply(ground, "- {file: c.yaml}\n", {"c.yaml": a_map("c", x="$key")}, values=values, operation="op10")


async def test_an_absent_namespace_is_made_and_goes_with_the_instance(ground: Any) -> None:
    """MC-031: with the labels of its region, as they are at each operation; none of them takes the place of ours."""
    place = f"own-{secrets.token_hex(4)}"
    enforced = {"pod-security.kubernetes.io/enforce": "baseline", "kubevnfm.io/vnf-instance-id": "not-ours"}
    labelled = replace(
        ground, site=ground.site.with_changes(region_labels=GivenRegionLabels({**enforced, "team": "a"}))
    )
    await apply(labelled, "- {file: a.yaml}\n", {"a.yaml": a_map("a")}, namespace=place)
    key = ObjectKey("v1", "Namespace", "", place)
    made = await ground.cluster.get(NAMESPACES, key)
    assert made["metadata"]["labels"]["kubevnfm.io/vnf-instance-id"] == ground.namespace
    assert made["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "kubevnfm"
    assert made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
    assert made["metadata"]["labels"]["team"] == "a"
    # A repeat finds its own.
    again = await apply(ground, "- {file: a.yaml}\n", {"a.yaml": a_map("a")}, namespace=place, attempt=2)
    assert {each.kind for each in again.objects} == {"Namespace", "ConfigMap"}
    assert "team" not in (await ground.cluster.get(NAMESPACES, key))["metadata"]["labels"]
    await ground.delete()
    left = await ground.cluster.get(NAMESPACES, key)
    assert left is None or left["metadata"]["uid"] != made["metadata"]["uid"]


async def test_a_change_in_a_namespace_of_its_own_is_rehearsed_as_a_whole(ground: Any) -> None:
    """MC-031: what the API server refuses at its end changes nothing before."""
    place = f"own-{secrets.token_hex(4)}"
    await apply(ground, "- {file: a.yaml}\n", {"a.yaml": a_map("a", held="before")}, namespace=place)
    files = {"a.yaml": a_map("a", held="after"), "bad.yaml": an_object("Service", "bad", spec={"ports": [{"port": 0}]})}
    with pytest.raises(ObjectsRefused):
        await ground.site.replace(
            {ORDER: "artifacts:\n- {file: a.yaml}\n- {file: bad.yaml, priority: 1}\n", **files}, def_files=list(files),
            order_artifact=ORDER, instance=ground.namespace, namespace=place,
        )  # fmt: skip
    found = await ground.cluster.get(CONFIG_MAPS, ObjectKey("v1", "ConfigMap", place, "a"))
    assert found["data"] == {"held": "before"}


async def test_a_namespace_with_something_foreign_in_it_stays(ground: Any) -> None:
    """MC-031: and the answer says what keeps it."""
    place = f"own-{secrets.token_hex(4)}"
    await apply(ground, "- {file: a.yaml}\n", {"a.yaml": a_map("a")}, namespace=place)
    theirs = ObjectKey("v1", "ConfigMap", place, "theirs")
    await ground.cluster.apply(CONFIG_MAPS, theirs, {**a_map("theirs"), "apiVersion": "v1"})
    done = await ground.delete()
    (left,) = done.left
    assert (left.kind, left.name, left.reason) == ("Namespace", place, f"it has ConfigMap {place}/theirs")
    assert any(f"it has ConfigMap {place}/theirs" in (each.message or "") for each in ground.site.progress)
    assert await ground.cluster.get(CONFIG_MAPS, ObjectKey("v1", "ConfigMap", place, "a")) is None
    assert await ground.cluster.get(CONFIG_MAPS, theirs) is not None
    await ground.cluster.delete(NAMESPACES, ObjectKey("v1", "Namespace", "", place))


async def test_a_namespace_that_existed_is_not_touched(ground: Any) -> None:
    """MC-031."""
    await apply(ground, "- {file: a.yaml}\n", {"a.yaml": a_map("a")})
    await ground.delete()
    found = await ground.cluster.get(NAMESPACES, ObjectKey("v1", "Namespace", "", ground.namespace))
    assert "kubevnfm.io/vnf-instance-id" not in found["metadata"].get("labels", {})
    assert "deletionTimestamp" not in found["metadata"]


async def test_an_object_may_be_in_a_namespace_that_the_order_allows(ground: Any) -> None:
    """MC-018."""
    other = f"other-{secrets.token_hex(4)}"
    key = ObjectKey("v1", "Namespace", "", other)
    await ground.cluster.apply(NAMESPACES, key, an_object("Namespace", other))
    files = {"a.yaml": [a_map("a"), an_object("ConfigMap", "b", metadata={"namespace": other})]}
    with pytest.raises(Unprocessable, match=f"namespace {ground.namespace} expected"):
        await apply(ground, "- {file: a.yaml}\n", files)
    await apply(ground, f"- {{file: a.yaml}}\nforeign_namespaces: [{other}]\n", files)
    assert await ground.shown("v1", "ConfigMap", "a") is not None
    assert await ground.cluster.get(CONFIG_MAPS, ObjectKey("v1", "ConfigMap", other, "b")) is not None
    await ground.delete()
    await ground.cluster.delete(NAMESPACES, key)
