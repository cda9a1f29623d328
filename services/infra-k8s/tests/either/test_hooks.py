"""Hooks: each point, each delete policy, failures, and a kill while one runs (multicloud.md MC-141, scenario 15)."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events.objects import ApplyObjects, ObjectsApplied
from kubevnfm_infra_k8s.domain.errors import ForeignObjects, HookFailed, ObjectFailed, WithRemains
from kubevnfm_infra_k8s.domain.objects import Body
from kubevnfm_worker.outcome import Done
from packages.kubernetes_objects import a_job, a_pod, an_object, things_of
from patience import until_true

ORDER = "artifact-order.yaml"


def command_of(ground: Any, artifacts: str, files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an operation on a package with these artifacts, in the namespace of the test."""
    ground.instances.add(ground.namespace)
    return {
        "files": {ORDER: f"artifacts:\n{artifacts}", **files},
        "def_files": list(files),
        "order_artifact": ORDER,
        "instance": ground.namespace,
        "namespace": ground.namespace,
    }


async def apply(ground: Any, artifacts: str, files: Mapping[str, Any], **more: Any) -> ObjectsApplied:
    ground.site.step = "apply"
    given = command_of(ground, artifacts, files)
    done: ObjectsApplied = await ground.site.apply(given.pop("files"), **given, **more)
    return done


async def replace(ground: Any, artifacts: str, files: Mapping[str, Any], **more: Any) -> ObjectsApplied:
    given = command_of(ground, artifacts, files)
    done: ObjectsApplied = await ground.site.replace(given.pop("files"), **given, **more)
    return done


def a_map(name: str, **data: str) -> dict[str, Any]:
    return an_object("ConfigMap", name, data=data)


async def job(ground: Any, name: str) -> Body | None:
    found: Body | None = await ground.shown("batch/v1", "Job", name)
    return found


async def uid(ground: Any, name: str) -> str:
    found = await job(ground, name)
    return "" if found is None else str(found["metadata"]["uid"])


async def version(ground: Any, kind: str, name: str) -> int:
    """Return the place of the creation of an object in the sequence of all writes of the cluster."""
    found = await ground.shown("batch/v1" if kind == "Job" else "v1", kind, name)
    return int(found["metadata"]["resourceVersion"])


def said(ground: Any) -> list[str]:
    return [each.message for each in ground.site.progress]


async def test_hooks_run_around_the_objects_in_their_order_and_on_their_occasions(ground: Any) -> None:
    """MC-141: by priority and name, each awaited; `on` limits them; they are none of the objects, and go with the instance."""
    files = {
        "first.yaml": a_job("first"),
        "second.yaml": a_job("second"),
        "late.yaml": a_job("late"),
        "up.yaml": a_job("up"),
        "back.yaml": a_job("back"),
        "a.yaml": a_map("a"),
    }
    order = (
        "- {file: second.yaml, hook: pre-apply, priority: 5, on: [create]}\n"
        "- {file: first.yaml, hook: pre-apply, on: [create]}\n"
        "- {file: late.yaml, hook: post-apply, on: [create, update]}\n"
        "- {file: up.yaml, hook: pre-apply, on: [update]}\n"
        "- {file: back.yaml, hook: post-apply, on: [rollback]}\n"
        "- {file: a.yaml}\n"
    )
    done = await apply(ground, order, files)
    assert [each.name for each in done.objects] == ["a"]
    assert [(each.name, each.hook, each.has_succeeded) for each in done.hooks] == [
        ("first", "pre-apply", True),
        ("second", "pre-apply", True),
        ("late", "post-apply", True),
    ]
    ended = [each for each in said(ground) if "has succeeded" in each]
    place = f"Job {ground.namespace}"
    assert ended == [
        f"pre-apply hook {place}/first (1 of 2): has succeeded",
        f"pre-apply hook {place}/second (2 of 2): has succeeded",
        f"post-apply hook {place}/late (1 of 1): has succeeded",
    ]
    assert any(each.startswith(f"pre-apply hook {place}/first (1 of 2): waits since ") for each in said(ground))
    first = await uid(ground, "first"), await uid(ground, "late")
    # Another operation runs those that are for it, and deletes the object of the earlier run.
    await replace(ground, order, {**files, "a.yaml": a_map("a", b="c")})
    second = await uid(ground, "first"), await uid(ground, "late")
    assert second[0] == first[0]
    assert second[1] != first[1]
    assert await uid(ground, "up")
    assert not await uid(ground, "back")
    # A rollback of it runs its own.
    await replace(ground, order, files, operation="op3", is_rollback=True, package_id="p-back")
    assert await uid(ground, "back")
    assert await uid(ground, "late") == second[1]
    # All is as it was applied: hooks are no drift. They go with the instance.
    assert (await ground.site.repair(**repairing(ground, files))).repaired == 0
    assert (await ground.delete()).count == 1
    for name in ("first", "second", "late", "up", "back"):
        assert await job(ground, name) is None


def repairing(ground: Any, files: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "def_files": list(files),
        "order_artifact": ORDER,
        "instance": ground.namespace,
        "namespace": ground.namespace,
        "package_id": "p-back",
    }


async def test_hooks_run_before_and_after_a_deletion(ground: Any) -> None:
    """MC-141: before the first object goes, and after the last one; the package is not read for it."""
    files = {"bye.yaml": a_job("bye"), "gone.yaml": a_job("gone"), "a.yaml": a_map("a")}
    files["bye.yaml"]["spec"]["suspend"] = True
    files["gone.yaml"]["spec"]["suspend"] = True
    order = "- {file: bye.yaml, hook: pre-delete}\n- {file: gone.yaml, hook: post-delete}\n- {file: a.yaml}\n"
    await apply(ground, order, files)
    assert await job(ground, "bye") is None
    deleting = asyncio.create_task(ground.delete())
    await until_true(lambda: _exists(ground, "bye"))
    assert await ground.shown("v1", "ConfigMap", "a") is not None
    await ground.as_other("batch/v1", "Job", "bye", {"spec": {"suspend": False}})
    await until_true(lambda: _exists(ground, "gone"))
    assert await ground.shown("v1", "ConfigMap", "a") is None
    await ground.as_other("batch/v1", "Job", "gone", {"spec": {"suspend": False}})
    await deleting
    assert await job(ground, "bye") is None
    assert await job(ground, "gone") is None


async def _exists(ground: Any, name: str) -> bool:
    return await job(ground, name) is not None


async def test_a_hook_that_fails_fails_the_operation_and_runs_again_at_a_retry(ground: Any) -> None:
    """MC-141: nothing of the objects is sent; a hook that has succeeded does not run again, the failed one does."""
    files = {"good.yaml": a_job("good"), "bad.yaml": a_job("bad", command="exit 3", annotations={"stage": "fail"})}
    files["a.yaml"] = a_map("a")
    order = (
        "- {file: good.yaml, hook: pre-apply}\n- {file: bad.yaml, hook: pre-apply, priority: 1%s}\n- {file: a.yaml}\n"
    )
    with pytest.raises(HookFailed, match=r"pre-apply hook Job .*/bad \(2 of 2\): .*BackoffLimitExceeded"):
        await apply(ground, order % "", files)
    assert await ground.shown("v1", "ConfigMap", "a") is None
    before = await uid(ground, "good"), await uid(ground, "bad")
    assert all(before)
    files["bad.yaml"] = a_job("bad")
    await apply(ground, order % "", files, attempt=2)
    assert await uid(ground, "good") == before[0]
    assert await uid(ground, "bad") not in ("", before[1])


@pytest.mark.parametrize(
    ("policies", "command", "is_left"),
    [
        ("before-creation", "true", True),
        ("on-success", "true", False),
        ("on-failure", "true", True),
        ("on-success", "exit 3", True),
        ("on-failure", "exit 3", False),
    ],
)
async def test_the_object_of_a_hook_is_deleted_as_its_policy_says(
    ground: Any, policies: str, command: str, is_left: bool
) -> None:
    """MC-141."""
    fate = {"stage": "fail"} if command != "true" else None
    files = {"h.yaml": a_job("h", command=command, annotations=fate), "a.yaml": a_map("a")}
    order = f"- {{file: h.yaml, hook: post-apply, hook_delete: [{policies}]}}\n- {{file: a.yaml}}\n"
    if command == "true":
        done = await apply(ground, order, files)
        assert bool(done.hooks) is is_left
    else:
        with pytest.raises(HookFailed) as caught:
            await apply(ground, order, files)
        assert caught.value.remains is not None
        assert [each.name for each in caught.value.remains.objects] == ["a"]
    if not is_left:
        await until_true(lambda: _is_gone(ground, "h"))
    assert bool(await job(ground, "h")) is is_left
    if command == "true" and is_left and policies != "before-creation":
        # Another operation finds the object of this one, and may not delete it.
        with pytest.raises(HookFailed, match="exists from an earlier run, and its hook_delete has no before-creation"):
            await replace(ground, order, files)


async def _is_gone(ground: Any, name: str) -> bool:
    return await job(ground, name) is None


async def test_an_object_of_a_hook_that_a_finalizer_holds_is_no_more_forgotten(ground: Any) -> None:
    """MC-141: its deletion has begun; the end of the instance waits for it, also in no namespace and after other operations."""
    name = f"{ground.namespace}-h"
    role = an_object("ClusterRole", name, api_version="rbac.authorization.k8s.io/v1", rules=[])
    role["metadata"]["finalizers"] = ["example.com/hold"]
    files = {"h.yaml": role, "i.yaml": a_map("i"), "a.yaml": a_map("a")}
    order = "- {file: h.yaml, hook: post-apply, hook_delete: [on-success], on: [create]}\n- {file: i.yaml, hook: pre-apply}\n- {file: a.yaml}\n"
    assert [each.name for each in (await apply(ground, order, files)).hooks if each.name == name] == [name]
    assert name in {each.name for each in (await replace(ground, order, files)).hooks}
    deleting = asyncio.create_task(ground.delete())

    async def is_held() -> bool:
        return any(name in each and "example.com/hold" in each for each in said(ground))

    await until_true(is_held)
    assert not deleting.done()
    await ground.as_other(role["apiVersion"], "ClusterRole", name, {"metadata": {"finalizers": None}})
    await deleting
    assert await ground.shown(role["apiVersion"], "ClusterRole", name) is None


async def test_the_hooks_for_failures_run_once_and_hide_no_error(ground: Any) -> None:
    """MC-141: when an object or a hook has failed; a failure of theirs is named beside the first one."""
    failing = a_job("main", command="exit 3", annotations={"stage": "fail"})
    files = {
        "main.yaml": failing,
        "tidy.yaml": a_job("tidy"),
        "worse.yaml": a_job("worse", command="exit 3", annotations={"stage": "fail"}),
    }
    order = "- {file: main.yaml}\n- {file: tidy.yaml, hook: on-failure}\n%s"
    with pytest.raises(Exception, match=r"Job .*/main: .*BackoffLimitExceeded") as caught:
        await apply(ground, order % "", {name: files[name] for name in ("main.yaml", "tidy.yaml")})
    assert isinstance(caught.value, WithRemains)
    assert caught.value.code == ObjectFailed.code
    tidied = await uid(ground, "tidy")
    assert tidied
    # A repeat of the call, as after a kill, runs it no second time; a new attempt that fails does.
    with pytest.raises(Exception, match="main"):
        await apply(ground, order % "", {name: files[name] for name in ("main.yaml", "tidy.yaml")})
    assert await uid(ground, "tidy") == tidied
    worse = order % "- {file: worse.yaml, hook: on-failure, priority: 1}\n"
    with pytest.raises(Exception, match=r"/main: .*; on-failure hook Job .*/worse \(2 of 2\): ") as second:
        await apply(ground, worse, files, attempt=2)
    assert isinstance(second.value, WithRemains)
    assert second.value.code == ObjectFailed.code
    assert await uid(ground, "tidy") not in ("", tidied)


async def test_a_worker_that_is_killed_finds_the_hook_that_runs(ground: Any) -> None:
    """MC-141: also if it has not stored that it sent the object; one that has ended does not run again."""
    running = a_job("slow")
    running["spec"]["suspend"] = True
    files = {"fast.yaml": a_job("fast"), "slow.yaml": running, "a.yaml": a_map("a")}
    order = (
        "- {file: fast.yaml, hook: pre-apply}\n- {file: slow.yaml, hook: pre-apply, priority: 1}\n- {file: a.yaml}\n"
    )
    given = command_of(ground, order, files)
    package = ground.site.packages.add(given.pop("files"))
    command = ApplyObjects(
        vnf_instance_id=given.pop("instance"),
        package=package,
        vim=ground.site.vim,
        **{**given, "def_files": tuple(files)},
    )
    await kill_before_it_knows(ground, command, "slow")
    before = await uid(ground, "fast"), await uid(ground, "slow")
    going_on = asyncio.create_task(until_done(ground, command))
    await ground.as_other("batch/v1", "Job", "slow", {"spec": {"suspend": False}})
    done = await going_on
    assert [each.name for each in done.objects] == ["a"]
    assert (await uid(ground, "fast"), await uid(ground, "slow")) == before


async def test_a_job_that_has_ended_is_collected_once_its_end_is_stored(ground: Any) -> None:
    """MC-141: not before, although ``ttlSecondsAfterFinished`` is 0: it would run again after a kill."""
    once = a_job("once", ttlSecondsAfterFinished=0)
    once["spec"]["suspend"] = True
    given = command_of(
        ground, "- {file: once.yaml, hook: pre-apply}\n- {file: a.yaml}\n", {"once.yaml": once, "a.yaml": a_map("a")}
    )
    package = ground.site.packages.add(given.pop("files"))
    command = ApplyObjects(
        vnf_instance_id=given.pop("instance"), package=package, vim=ground.site.vim,
        **{**given, "def_files": ("once.yaml", "a.yaml")},
    )  # fmt: skip
    await kill_before_it_knows(ground, command, "once")
    first = await uid(ground, "once")
    await ground.as_other("batch/v1", "Job", "once", {"spec": {"suspend": False}})

    async def has_ended() -> bool:
        found = await job(ground, "once")
        assert found is not None
        return bool(found.get("status", {}).get("completionTime"))

    await until_true(has_ended)
    done = await until_done(ground, command)
    assert [(each.name, each.uid, each.has_succeeded) for each in done.hooks] == [("once", first, True)]
    await until_true(lambda: _is_gone(ground, "once"))


async def kill_before_it_knows(ground: Any, command: ApplyObjects, hook: str) -> None:
    """Cancel the command while the hook waits, as if the worker had died before it stored the answer to its request."""
    releases = ground.site.handlers.releases
    killed = asyncio.create_task(ground.site.handlers.apply_objects(command, ground.site.context()))

    async def is_recorded() -> bool:
        release = await releases.get(ground.namespace)
        return release is not None and any(each.key.name == hook and each.uid for each in release.hooks)

    # A write that is asked for is done after the cancellation as well, and would come between the next two calls.
    await until_true(is_recorded)
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)
    release = await releases.get(ground.namespace)
    (record,) = [each for each in release.hooks if each.key.name == hook]
    await releases.save(release.with_hook(dataclasses.replace(record, uid="")))


async def until_done(ground: Any, command: ApplyObjects) -> ObjectsApplied:
    while True:
        outcome = await ground.site.handlers.apply_objects(command, ground.site.context())
        if isinstance(outcome, Done):
            assert isinstance(outcome.event, ObjectsApplied)
            return outcome.event


async def test_a_pod_is_awaited_until_it_has_succeeded_and_other_kinds_until_they_are_ready(ground: Any) -> None:
    """MC-141: a Pod that runs and is Ready has not ended; a wait of the order holds for a hook too."""
    group = f"{ground.namespace}.example"
    definition = things_of(group)
    definition["spec"]["versions"][0]["subresources"] = {"status": {}}
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status
    await ground.create(definition)
    pod = a_pod(restartPolicy="Never")
    files = {
        "p.yaml": an_object("Pod", "p", spec=pod["spec"]),
        "t.yaml": an_object("Thing", "t", api_version=f"{group}/v1"),
        "a.yaml": a_map("a"),
    }
    order = (
        "- {file: p.yaml, hook: pre-apply}\n- {file: a.yaml}\n"
        "- {file: t.yaml, hook: pre-apply, priority: 1, wait: {jsonpath: '{.status.phase}', value: Up}}\n"
    )
    try:
        applying = asyncio.create_task(apply(ground, order, files))

        async def is_ready() -> bool:
            found = await ground.shown("v1", "Pod", "p")
            listed = (found or {}).get("status", {}).get("conditions", [])
            return any(each["type"] == "Ready" and each["status"] == "True" for each in listed)

        await until_true(is_ready)
        assert await ground.shown(f"{group}/v1", "Thing", "t") is None
        await ground.as_other("v1", "Pod", "p", {"status": {"phase": "Succeeded"}}, at="/status")

        async def is_there() -> bool:
            return await ground.shown(f"{group}/v1", "Thing", "t") is not None

        await until_true(is_there)
        await ground.as_other(f"{group}/v1", "Thing", "t", {"status": {"phase": "Up"}}, at="/status")
        assert [each.name for each in (await applying).objects] == ["a"]
        await ground.delete()
        assert await ground.shown("v1", "Pod", "p") is None
    finally:
        resource = await ground.cluster.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        await ground.cluster.delete(resource, resource.key(definition))


async def test_an_object_of_others_is_no_hook_of_ours(ground: Any) -> None:
    """MC-141: it is neither deleted nor counted as an earlier run."""
    await ground.create({**a_map("h"), "metadata": {"name": "h", "namespace": ground.namespace}})
    order = "- {file: h.yaml, hook: pre-apply}\n- {file: a.yaml}\n"
    with pytest.raises(ForeignObjects, match=r"ConfigMap .*/h"):
        await apply(ground, order, {"h.yaml": a_map("h"), "a.yaml": a_map("a")})
    found = await ground.shown("v1", "ConfigMap", "h")
    assert "labels" not in found["metadata"]


CHART = {
    "Files/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}\n",
    "Files/web/crds/things.yaml": "",
    "Files/web/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {by: {{ .Values.by }}}\n",
}


def a_helm_hook(name: str, hook: str, policy: str = "", **spec: Any) -> dict[str, Any]:
    annotations = {"helm.sh/hook": hook, **({"helm.sh/hook-delete-policy": policy} if policy else {})}
    return {**a_job(name, **spec), "metadata": {"name": name, "annotations": annotations}}


@pytest.mark.parametrize("program", ["helm", "helm4"])
async def test_the_hooks_of_a_chart_run_with_the_real_program(ground: Any, tmp_path: Path, program: str) -> None:
    """MC-141, MC-048 (scenario 15): Helm 3 and 4; each point, a delete policy, one that fails, an upgrade and a deletion."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"there is no program {program}")
    (tmp_path / "helm").symlink_to(found)
    # A health check is one of an instance in a registered region.
    ground.site = ground.site.registered()
    group = f"{ground.namespace}.example"
    thing = an_object("Thing", "t", api_version=f"{group}/v1")
    thing["metadata"]["annotations"] = {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "3"}
    failing = a_helm_hook("late", "post-install", "hook-failed", command="exit 3", annotations={"stage": "fail"})
    templates = {
        "first": a_helm_hook("first", "pre-install,pre-upgrade"),
        "late": failing,
        "up": a_helm_hook("up", "post-upgrade", "hook-succeeded"),
        "bye": a_helm_hook("bye", "pre-delete"),
        "check": a_helm_hook("check", "test"),
        "thing": thing,
    }
    chart = {**CHART, "Files/web/crds/things.yaml": things_of(group)}
    chart |= {f"Files/web/templates/{name}.yaml": body for name, body in templates.items()}
    order = "- {chart: Files/web}\nvalues: {by: program}\n"
    given = {"def_files": (), "order_artifact": ORDER, "instance": ground.namespace, "namespace": ground.namespace}
    files = {ORDER: f"artifacts:\n{order}", **chart}
    ground.instances.add(ground.namespace)
    ground.site.step = "apply"
    with pytest.raises(HookFailed, match=r"post-apply hook Job .*/late"):
        await ground.site.apply(files, **given)
    await until_true(lambda: _is_gone(ground, "late"))
    before = await uid(ground, "first")
    files["Files/web/templates/late.yaml"] = a_helm_hook("late", "post-install")
    done = await ground.site.apply(files, **given, attempt=2, operation="op1b")
    assert {each.name for each in done.objects} == {"a", f"things.{group}"}
    assert {(each.name, each.hook) for each in done.hooks} == {
        ("first", "pre-apply"),
        ("t", "pre-apply"),
        ("late", "post-apply"),
    }
    assert await uid(ground, "first") not in ("", before)
    again = await uid(ground, "first")
    await ground.site.replace(files, **given)
    assert await uid(ground, "first") not in ("", again)
    await until_true(lambda: _is_gone(ground, "up"))
    assert await job(ground, "check") is None
    checks = ground.site.handlers.checks
    checked = await checks.create(ground.namespace)

    async def has_ended() -> bool:
        return bool((await checks.get(ground.namespace, checked.id)).status != "Running")

    await until_true(has_ended)
    assert [(each.name, each.status) for each in (await checks.get(ground.namespace, checked.id)).results] == [
        ("check", "Succeeded")
    ]
    assert await job(ground, "check") is not None
    assert not (await ground.delete()).left
    assert await ground.shown("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"things.{group}") is None
    assert any("pre-delete hook" in each and "/bye" in each for each in said(ground))
    assert await job(ground, "bye") is None
