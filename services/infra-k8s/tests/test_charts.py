"""CNFs that are Helm charts. A program that stands in for helm shows what it is called with, and fills in values.

It runs confined, as helm does. tests/kubernetes runs the real program; tests/attack/test_charts.py attacks with both.
"""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kubevnfm_clients.charts import HttpChartPrograms
from kubevnfm_clients.multicloud.dry_runs import DryRunOrder
from kubevnfm_clients.multicloud.errors import ChartNotFetched, ChartRefused, ChartUnavailable
from kubevnfm_clients.multicloud.health_checks import HealthCheck
from kubevnfm_events.objects import HelmChart, VduTarget
from kubevnfm_infra_k8s.adapters.helm import HelmProgram
from kubevnfm_infra_k8s.adapters.http_charts import chart_routes
from kubevnfm_infra_k8s.adapters.sources import FETCHED
from kubevnfm_infra_k8s.adapters.stored_checks import CHECKS
from kubevnfm_infra_k8s.domain.charts import ChartTarget, templates_of
from kubevnfm_infra_k8s.domain.errors import HelmMissing
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.handlers.dry_runs import DryRunHandlers
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.http import serving
from kubevnfm_kit.internal import internal_app
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_store.query import AllOf, by
from packages.kubernetes_objects import a_job
from patience import until, until_true
from worlds.health_checks import health_check_owner
from worlds.set_clock import SetClock

STAND_IN = """\
import json, pathlib, sys, uuid
if sys.argv[1] == "version":
    sys.exit(print("v3.99.1") if sys.argv[2:] == ["--template", "{{.Version}}"] else 2)
chart = pathlib.Path(sys.argv[3])
values = json.load(sys.stdin)
call = {"arguments": json.dumps(sys.argv[1:]), "values": json.dumps(values)}
print(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": values.get("call", "call")}, "data": call}))
if "fail" in values:
    sys.exit("Error: execution error at (web/templates/secret.yaml:3): wrong value " + values["fail"])
for template in sorted(chart.glob("templates/*.yaml")):
    text = template.read_text().replace("RELEASE", sys.argv[2]).replace("CHANCE", uuid.uuid4().hex)
    for name, value in values.items():
        text = text.replace("{{ " + name + " }}", json.dumps(value))
    print("---\\n# Source: web/templates/" + template.name + "\\n" + text)
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-RELEASE}
spec:
  replicas: {{ replicas }}
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: nginx}]}}
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: {{ password }}, chance: CHANCE}
"""
FILES = {
    "Files/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}\n",
    "Files/web/templates/deployment.yaml": DEPLOYMENT,
    "Files/web/templates/secret.yaml": SECRET,
}
SECRETS = Resource("v1", "Secret", "secrets", namespaced=True)
VDU = VduTarget(vdu_id="VDU1", name="web", replicas=2, is_in_chart=True)


def a_chart(**values: Any) -> HelmChart:
    given = {"replicas": 2, "password": Secret("swordfish-9"), **values}
    return HelmChart(path="Files/web", release_name="vnf1", values=given)


@pytest.fixture(name="helm")
def install_helm(tmp_path: Path) -> None:
    """Install the program."""
    program = tmp_path / "helm"
    program.write_text(f"#!{Path(sys.executable).resolve()}\n{STAND_IN}", encoding="utf-8")
    program.chmod(0o700)


async def read(cluster: Cluster, kind: str, name: str) -> dict[str, Any]:
    """Return an object of the chart."""
    key = ObjectKey("v1", kind, "default", name)
    found = await cluster.get(Resource("v1", kind, f"{kind.lower()}s", namespaced=True), key)
    assert found is not None
    return dict(found)


async def test_a_chart_becomes_objects_and_its_workload_the_vdus(
    site: Any, lab: LabCluster, cluster: Cluster, helm: None
) -> None:
    """MC-048, CR-005, CR-030: the name up to its last dash is that of the VDU; values come by standard input alone."""
    applied = await site.apply(FILES, def_files=(), chart=a_chart(), vdus=[VDU])
    deployment = next(one for one in applied.objects if one.kind == "Deployment")
    assert (deployment.name, deployment.vdu_id) == ("web-vnf1", "VDU1")
    assert {pod.vdu_id for pod in applied.pods} == {"VDU1"}
    assert len(applied.pods) == 2
    call = (await read(cluster, "ConfigMap", "call"))["data"]
    arguments, values = json.loads(call["arguments"]), json.loads(call["values"])
    assert arguments[:2] == ["template", "vnf1"]
    assert values == {"replicas": 2, "password": "swordfish-9"}
    assert "swordfish-9" not in " ".join(arguments)
    given = dict(pairwise(arguments))
    assert given["--namespace"] == "default"
    assert given["--kube-version"] == lab.version
    assert {"v1", "apps/v1", "apps/v1/Deployment"} <= set(given["--api-versions"].split(","))


async def test_the_releases_of_a_request_are_rendered_in_order_and_a_vdu_is_in_its_own(
    site: Any, cluster: Cluster, helm: None, tmp_path: Path
) -> None:
    """CR-005a, CR-008, CR-030: two releases of one chart, and one of a repository, by the digest of its archive."""
    files = {name: text for name, text in FILES.items() if "secret" not in name}
    url, digest = "https://charts.example.org/web-1.0.0.tgz", f"sha256:{'1' * 64}"
    site.packages.add(files, package_id="fetched")
    site.charts.places[digest] = site.packages.root / "fetched/Files/web"

    def releases(*named: str) -> list[HelmChart]:
        places = {"a": ("Files/web", ""), "b": ("Files/web", ""), "c": (url, digest)}
        return [
            HelmChart(path=path, digest=given, release_name=name, values={"replicas": 1, "call": call})
            for (name, (path, given)), call in zip(places.items(), named, strict=True)
        ]

    vdus = [VduTarget(vdu_id="VDU1", name="web-b", kind="Deployment", release_name="b", replicas=2)]
    with pytest.raises(InvalidInput, match="ConfigMap x: defined in both a: Files/web and b: Files/web"):
        await site.apply(files, def_files=(), releases=releases("x", "x", "z"), vdus=vdus)
    elsewhere = [vdus[0].model_copy(update={"release_name": "c"})]
    with pytest.raises(InvalidInput, match="Deployment web-b expected in release c, found Deployment web-a, "):
        await site.apply(files, def_files=(), releases=releases("x", "y", "z"), vdus=elsewhere)
    done = await site.apply(files, def_files=(), releases=releases("x", "y", "z"), vdus=vdus)
    deployments = {each.name: each.vdu_id for each in done.objects if each.kind == "Deployment"}
    assert deployments == {"web-a": None, "web-b": "VDU1", "web-c": None}
    assert len(done.pods) == 2
    assert [(each.oci, each.digest) for each in site.charts.asked[-1:]] == [(url, digest)]
    calls = [json.loads((await read(cluster, "ConfigMap", name))["data"]["arguments"])[1] for name in "xyz"]
    assert calls == ["a", "b", "c"]
    assert f"{url}: rendered by Helm v3.99.1" in [each.message for each in site.progress if each.task == "charts"]


async def test_a_retry_applies_what_the_first_try_has_rendered(
    site: Any, cluster: Cluster, helm: None, tmp_path: Path
) -> None:
    """CR-008, CR-122: a chart may use chance, and may not make other objects at each try."""
    chart = a_chart()
    chances = []
    for operation, attempt in (("op1", 1), ("op1", 2), ("op2", 1)):
        await site.apply(FILES, def_files=(), chart=chart, operation=operation, attempt=attempt)
        chances.append((await read(cluster, "Secret", "login"))["data"]["chance"])
    assert chances[0] == chances[1] != chances[2]
    await site.delete()
    stored = (path.read_bytes() for path in tmp_path.glob("documents.db*"))
    assert not any(b"swordfish-9" in content for content in stored)


async def test_a_chart_that_cannot_be_rendered_says_why_without_secrets(site: Any, helm: None) -> None:
    with pytest.raises(ChartRefused, match=r"web/templates/secret.yaml:3.*wrong value \*\*\*$"):
        await site.apply(FILES, def_files=(), chart=a_chart(fail=Secret("swordfish-10")))


def a_hook(name: str, hook: str, *, weight: str = "0", policy: str = "") -> str:
    annotations = {"helm.sh/hook": hook, "helm.sh/hook-weight": weight}
    if policy:
        annotations["helm.sh/hook-delete-policy"] = policy
    metadata = {"name": name, "annotations": annotations}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


async def test_the_hooks_of_a_chart_run_as_those_of_an_order(site: Any, cluster: Cluster, helm: None) -> None:
    """MC-141, MC-048: by weight; a hook for another occasion and a test do not run; what has succeeded may go."""
    hooks = {
        "first": a_hook("first", "pre-install, pre-upgrade", weight="-5"),
        "second": a_hook("second", "pre-install,test"),
        "third": a_hook("third", "post-install", policy="hook-succeeded,before-hook-creation"),
        "fourth": a_hook("fourth", "post-upgrade"),
        "fifth": a_hook("fifth", "test"),
    }
    files = {f"Files/web/templates/{name}.yaml": text for name, text in hooks.items()}
    done = await site.apply({**FILES, **files}, def_files=(), chart=a_chart())
    assert [(each.name, each.hook) for each in done.hooks] == [("first", "pre-apply"), ("second", "pre-apply")]
    assert not {"first", "second", "third", "fourth", "fifth"} & {each.name for each in done.objects}
    ran = [each.message.split()[3] for each in site.progress if "has succeeded" in each.message]
    assert ran == ["default/first", "default/second", "default/third"]
    assert await site.delete() is not None
    with pytest.raises(AssertionError):
        await read(cluster, "ConfigMap", "first")


@pytest.mark.parametrize(
    ("hook", "problem"),
    [
        (a_hook("h", "post-instal"), r"Files/web: web/templates/hook.yaml, document 1: helm.sh/hook: one of"),
        (a_hook("h", "pre-install", weight="1.5"), "helm.sh/hook-weight: a whole number from"),
        (a_hook("h", "pre-install", policy="never"), "helm.sh/hook-delete-policy: one of"),
    ],
)
async def test_a_hook_that_helm_does_not_know_is_refused(site: Any, helm: None, hook: str, problem: str) -> None:
    """MC-141."""
    with pytest.raises(ChartRefused, match=problem):
        await site.apply({**FILES, "Files/web/templates/hook.yaml": hook}, def_files=(), chart=a_chart())


@pytest.mark.parametrize(
    "line",
    [
        'helm: 1: info: skipping unknown hook: "crd-install"',
        'level=INFO msg="skipping unknown hooks" hookTypes=crd-install',
    ],
)
async def test_a_definition_of_helm_2_is_refused(site: Any, tmp_path: Path, line: str) -> None:
    """MC-141, MC-048: Helm 3 and 4 leave it out without an error."""
    program = tmp_path / "helm"
    program.write_text(f"#!{Path(sys.executable).resolve()}\nimport sys\nprint({line!r}, file=sys.stderr)\n")
    program.chmod(0o700)
    files = {**FILES, "Files/web/templates/crd.yaml": "# crd-install\n"}
    with pytest.raises(ChartRefused, match=r"Files/web: templates/crd\.yaml: Helm does not know the hook crd-install;"):
        await site.apply(files, def_files=(), chart=a_chart())


ORDER = "artifact-order.yaml"


async def test_a_chart_has_a_place_in_an_order(site: Any, cluster: Cluster, helm: None) -> None:
    """MC-048: with its priority and wait; its values are those of the VNF without the reserved names, and no `$` is replaced."""
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {text: $name, got: {{ greeting }}}\n"
    order = (
        "artifacts:\n- {file: a.yaml, priority: 1}\n- {chart: Files/web, priority: 2}\n- {file: z.yaml, after: [Files/web]}\n"
        "values: {greeting: hello, replicas: 1, password: x}\nobjects:\n- {object: {kind: ConfigMap, name: made}, wait: exists}\n"
    )
    maps = {f"{n}.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n}} for n in "az"}
    files = {**FILES, **maps, "Files/web/templates/made.yaml": template, ORDER: order}
    values = {"greeting": "bye", "namespace": "default", "password": Secret("swordfish-13")}
    await site.apply(
        files, def_files=["a.yaml", "z.yaml"], order_artifact=ORDER, namespace="default", values=values, instance="i-1"
    )
    made = await read(cluster, "ConfigMap", "made")
    assert made["data"] == {"text": "$name", "got": "bye"}
    call = (await read(cluster, "ConfigMap", "call"))["data"]
    assert json.loads(call["values"]) == {"greeting": "bye", "replicas": 1, "password": "swordfish-13"}
    assert json.loads(call["arguments"])[1] == "vnfi1"
    order_of = {
        n: int((await read(cluster, "ConfigMap", n))["metadata"]["resourceVersion"]) for n in ("a", "made", "z")
    }
    assert sorted(order_of, key=order_of.__getitem__) == ["a", "made", "z"]
    await site.delete(instance="i-1")


DIGEST = f"sha256:{'1' * 64}"
OF_REGISTRY = (
    f"artifacts: [{{chart: {{oci: 'oci://registry.test/acme/web', digest: '{DIGEST}'}}}}]\nvalues: {{replicas: 1}}\n"
)
ORDERED = {"def_files": (), "order_artifact": ORDER, "namespace": "default", "values": {"password": Secret("x-1")}}


async def test_a_chart_of_a_registry_is_rendered_as_one_of_a_package(
    site: Any, cluster: Cluster, helm: None, tmp_path: Path
) -> None:
    """MC-048, MC-122: nothing is applied before it is there; what a registry does not have is no reason to wait; the progress names the version of Helm; a rollback renders the values before."""
    files, chart = {ORDER: OF_REGISTRY}, tmp_path / "fetched"
    for name, text in FILES.items():
        path = chart / name.removeprefix("Files/web/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with pytest.raises(ChartNotFetched, match="acme/web: the registry does not have"):
        await site.apply(files, **ORDERED)
    site.charts.places[DIGEST] = chart
    site.charts.failures.append("the registry does not answer")
    with pytest.raises(ChartUnavailable, match="does not answer") as waits:
        await site.apply(files, **ORDERED, attempt=2)
    assert waits.value.retryable
    assert await cluster.get(SECRETS, ObjectKey("v1", "Secret", "default", "login")) is None
    done = await site.apply(files, **ORDERED, attempt=2)
    assert {each.kind for each in done.objects} == {"ConfigMap", "Deployment", "Secret"}
    assert {(each.package_id, each.digest) for each in site.charts.asked} == {("p-i1", DIGEST)}
    said = [each.message for each in site.progress if each.task == "charts"]
    assert said == ["oci://registry.test/acme/web: rendered by Helm v3.99.1"]
    for step, secret in (("change", "x-2"), ("rollback", "x-1")):
        site.step = step
        await site.apply(files, **{**ORDERED, "values": {"password": Secret(secret)}}, operation="op7")
        password = (await read(cluster, "Secret", "login"))["data"]["password"]
        assert base64.b64decode(password).decode() == secret


def a_test(name: str, *, weight: str = "0", policy: str = "", fate: str = "") -> str:
    """Return a Job that is a test of a chart."""
    body = a_job(name, command="exit 3" if fate == "fail" else "true", suspend=fate == "hang")
    annotations = {"helm.sh/hook": "test", "helm.sh/hook-weight": weight}
    if policy:
        annotations["helm.sh/hook-delete-policy"] = policy
    return json.dumps({**body, "metadata": {"name": name, "annotations": annotations}})


TESTED = {"def_files": (), "order_artifact": ORDER, "namespace": "default", "instance": "i-1"}
JOBS = Resource("batch/v1", "Job", "jobs", namespaced=True)


async def brought_up(site: Any, **tests: str) -> Any:
    """Bring an instance with these tests up; return its site, whose VIM is registered."""
    order = "artifacts: [{chart: Files/web}]\nvalues: {replicas: 1, password: x}\n"
    files = {f"Files/web/templates/test-{name}.yaml": text for name, text in tests.items()}
    mine = site.registered()
    applied = await mine.apply({**FILES, ORDER: order, **files}, **TESTED)
    assert not applied.hooks
    return mine


async def ended(site: Any, check_id: str) -> HealthCheck:
    """Return a check once it has ended."""

    async def found() -> HealthCheck | None:
        check: HealthCheck = await site.handlers.checks.get("i-1", check_id)
        return check if check.status != "Running" else None

    return await until(found)


async def job_named(cluster: Cluster, name: str) -> Any:
    return await cluster.get(JOBS, ObjectKey("batch/v1", "Job", "default", name))


async def test_a_health_check_runs_the_tests_of_a_chart(site: Any, cluster: Cluster, helm: None) -> None:
    """MC-134, MC-141: by weight, also after one that has failed; delete policies; one check at a time; stored, removed with its objects."""
    mine = await brought_up(
        site,
        a=a_test("second", weight="2", fate="fail"),
        b=a_test("first", weight="-1", policy="hook-succeeded"),
        c=a_test("third", weight="3"),
    )
    checks = mine.handlers.checks
    assert await job_named(cluster, "second") is None, "an operation runs none"
    begun = await checks.create("i-1")
    assert (begun.status, [each.name for each in begun.results]) == ("Running", ["first", "second", "third"])
    with pytest.raises(Conflict, match="one runs at a time"):
        await checks.create("i-1")
    done = await ended(mine, begun.id)
    assert done.status == "Failed"
    assert [(each.name, each.status) for each in done.results] == [
        ("first", "Succeeded"),
        ("second", "Failed"),
        ("third", "Succeeded"),
    ]
    assert "BackoffLimitExceeded" in done.results[1].reason
    assert all(each.started_at and each.completed_at for each in done.results)
    assert await job_named(cluster, "first") is None
    left = await job_named(cluster, "second")
    # The next one has objects of its own; those of another release of the name stay.
    again = await ended(mine, (await checks.create("i-1")).id)
    assert [each.id for each in await checks.find("i-1")] == [begun.id, again.id]
    newer = await job_named(cluster, "second")
    assert newer["metadata"]["uid"] != left["metadata"]["uid"]
    await checks.delete("i-1", begun.id)
    with pytest.raises(NotFound):
        await checks.get("i-1", begun.id)
    await until_true(partial(is_stored, mine, 1))
    assert (await job_named(cluster, "second"))["metadata"]["uid"] == newer["metadata"]["uid"]
    # One that others have put in the place of another is not ours, whatever its labels say.
    key, ours = ObjectKey("batch/v1", "Job", "default", "third"), await job_named(cluster, "third")
    await cluster.delete(JOBS, key)
    await until_true(partial(is_gone, cluster, "third"))
    named = {name: ours["metadata"][name] for name in ("name", "namespace", "labels")}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx:1.27"}]}}
    foreign = await cluster.create(JOBS, key, {**ours, "metadata": named, "spec": {"template": template}})
    await checks.delete("i-1", again.id)
    await until_true(partial(is_stored, mine, 0))
    assert await job_named(cluster, "second") is None
    assert foreign is not None
    assert (await job_named(cluster, "third"))["metadata"]["uid"] == foreign["metadata"]["uid"]
    with pytest.raises(NotFound):
        await checks.get("i-2", again.id)


async def is_gone(cluster: Cluster, name: str) -> bool:
    """Return whether there is no Job of this name."""
    return await job_named(cluster, name) is None


async def is_stored(site: Any, count: int) -> bool:
    """Return whether this number of checks is stored."""
    return bool(await site.store.count(CHECKS, AllOf(), limit=9) == count)


async def test_a_health_check_that_runs_goes_with_its_instance(site: Any, cluster: Cluster, helm: None) -> None:
    """MC-134, MC-141: nothing of it is left, also of one whose test began during the termination; a test has a time limit."""
    mine = await brought_up(site, a=a_test("slow", fate="hang"))
    checks = mine.handlers.checks
    begun = await checks.create("i-1")

    async def runs() -> bool:
        return await job_named(cluster, "slow") is not None

    await until_true(runs)
    await mine.delete(instance="i-1")
    await until_true(partial(is_stored, mine, 0))
    assert await job_named(cluster, "slow") is None
    with pytest.raises(Conflict, match="no Kubernetes objects"):
        await checks.create("i-1")
    with pytest.raises(NotFound):
        await checks.get("i-1", begun.id)


async def test_a_chart_without_tests_is_healthy_and_few_checks_are_stored(site: Any, helm: None) -> None:
    """MC-134: as Helm has it."""
    mine, clock = await brought_up(site), SetClock(datetime(2030, 1, 1, tzinfo=UTC))
    checks, made = replace(mine.handlers.checks, clock=clock), []
    for _ in range(22):
        made.append(await checks.create("i-1"))
        clock.advance(1)
    assert {each.status for each in made} == {"Succeeded"}
    assert [each.id for each in await checks.find("i-1")] == [each.id for each in made[2:]]


async def test_a_health_check_is_continued_by_another_process(site: Any, cluster: Cluster, helm: None) -> None:
    """MC-134: one that was killed leaves a test that runs; the next one finds it, and repeats none that has ended."""
    mine = await brought_up(site, a=a_test("fast"), b=a_test("slow", weight="1", fate="hang"))
    handlers, ring = mine.handlers, mine.handlers.key_ring
    async with health_check_owner(mine.store, ring, mine.clusters, {"vim": mine.vim}) as killed:
        begun = await killed.create("i-1")

        async def runs() -> bool:
            return await job_named(cluster, "slow") is not None

        await until_true(runs)
        uids = [(await job_named(cluster, name))["metadata"]["uid"] for name in ("fast", "slow")]
    handlers.checks.work.wake(begun.id)
    await cluster.patch(JOBS, ObjectKey("batch/v1", "Job", "default", "slow"), {"spec": {"suspend": False}})
    done = await ended(mine, begun.id)
    assert [each.status for each in done.results] == ["Succeeded", "Succeeded"]
    assert [(await job_named(cluster, name))["metadata"]["uid"] for name in ("fast", "slow")] == uids


async def test_a_dry_run_stores_nothing_of_a_chart(site: Any, helm: None) -> None:
    """MC-033, MC-048: each would leave what its chart has made, of an instance that need not exist."""
    files = {**FILES, ORDER: "artifacts: [{chart: Files/web}]\nvalues: {replicas: 1, password: x}\n"}
    order = DryRunOrder(
        vnf_instance_id="i-9", package=site.packages.add(files), vim=site.vim, def_files=(), order_artifact=ORDER,
        namespace="default", mode="render",
    )  # fmt: skip
    report = await DryRunHandlers(**vars(site.handlers)).run(order)
    assert {each.kind for each in report.objects} == {"ConfigMap", "Deployment", "Secret"}
    assert await site.store.count(FETCHED, by(vnfInstanceId="i-9"), limit=1) == 0


async def test_an_order_of_charts_alone_is_applied(site: Any, cluster: Cluster, helm: None) -> None:
    """MC-048, MC-130: under the name of a release and for the version that the request gives; and an object in it that the order does not have is refused with the line."""
    order = "artifacts: [{chart: Files/web}]\nvalues: {replicas: 1, password: x}\n"
    given = {
        "def_files": (),
        "order_artifact": ORDER,
        "namespace": "default",
        "instance": "i-1",
        "release_name": "fw.1",
        "kubernetes_version": "1.27.5",
    }
    done = await site.apply({**FILES, ORDER: order}, **given)
    assert {each.kind for each in done.objects} == {"ConfigMap", "Deployment", "Secret"}
    arguments = json.loads((await read(cluster, "ConfigMap", "call"))["data"]["arguments"])
    assert (arguments[1], arguments[arguments.index("--kube-version") + 1]) == ("fw.1", "1.27.5")
    await site.delete(instance="i-1")
    wrong = f"{order}objects:\n- {{object: {{kind: ConfigMap, name: none}}, priority: 1}}\n"
    with pytest.raises(Unprocessable, match=f"{ORDER}:4: object: the order has no object ConfigMap/none"):
        await site.apply({**FILES, ORDER: wrong}, **given)


async def test_without_the_program_a_chart_is_refused(site: Any) -> None:
    """MC-048."""
    with pytest.raises(HelmMissing, match="program"):
        await site.apply(FILES, def_files=(), chart=a_chart())
    ring = KeyRing.from_text(KeyRing.new_key())
    absent, there = (HelmProgram(name, ring, Limits(timeout_s=20)) for name in ("/nowhere/helm", sys.executable))
    for program, why in (
        (absent, "a Helm chart needs the program /nowhere/helm, which infra-k8s does not have"),
        (there, ""),
    ):
        async with (
            serving(internal_app(chart_routes(program), token="token"), host="127.0.0.1", port=0) as port,
            aiohttp.ClientSession() as session,
        ):
            assert await HttpChartPrograms(f"http://127.0.0.1:{port}", "token", session).why_missing() == why


async def test_a_chart_that_was_modified_is_refused(site: Any, helm: None) -> None:
    """CR-004: all files of the chart are those of the package."""
    site.packages.add(FILES, package_id="p-i1")
    (site.packages.root / "p-i1/Files/web/templates/secret.yaml").write_text("kind: Other\n")
    with pytest.raises(InvalidInput, match=r"templates/secret.yaml: modified"):
        await site.handlers.sources.rendered(
            site.packages.named("p-i1"),
            a_chart(),
            ChartTarget("default", "1.34.0", ()),
            vnf_instance_id="i1",
            operation_id="op1",
            note=None,
        )


def test_the_templates_of_a_rendered_chart_keep_their_order() -> None:
    rendered = "---\n# Source: web/crds/a.yaml\na: 1\n---\n# Source: web/templates/b.yaml\nb: 1\n---\n# Source: web/crds/a.yaml\na: 2\n"
    assert templates_of("Files/web", rendered) == [
        ("Files/web: web/crds/a.yaml", "# Source: web/crds/a.yaml\na: 1\n---\n# Source: web/crds/a.yaml\na: 2\n"),
        ("Files/web: web/templates/b.yaml", "# Source: web/templates/b.yaml\nb: 1\n"),
    ]


def test_a_chart_of_very_many_documents_is_refused() -> None:
    with pytest.raises(ChartRefused, match="Files/web: the chart makes 20000 documents or more"):
        templates_of("Files/web", "---\na: b\n" * 30_000)
    assert templates_of(
        "Files/web", "---\n" * 30_000 + "\n" * 10**6 + "# Source: \n# Source:  web/a.yaml \na: b\n--- \r\n"
    ) == [("Files/web: web/a.yaml", "\n" * 10**6 + "# Source: \n# Source:  web/a.yaml \na: b\n")]
