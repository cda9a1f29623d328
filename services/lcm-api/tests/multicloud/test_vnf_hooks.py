"""VNFs with hooks and charts over HTTP, and the rows of bad input for them (multicloud.md MC-141, MC-048)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from kubevnfm_events.objects import ApplyObjects, DeleteObjects, HookFacts, ObjectsApplied
from packages.package_variants import variant
from worlds.lcm_builders import ANSWERS
from worlds.multicloud_world import FOLDER, PASSWORD, VNFS, Gateway, a_gateway

HOOKED: Final = "33333333-aaaa-bbbb-cccc-dddddddddddd"
APPLY: Final = "infra.k8s.apply_objects"
A_MACHINE: Final = (
    "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {name: vm}\n"
    "spec: {domain: {devices: {interfaces: [{name: a, slirp: {}}]}}}\n"
)
A_MAP: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
A_REMOTE: Final = f"- {{chart: {{oci: 'oci://host/a', digest: 'sha256:{'0' * 64}'}}}}"
BAD: Final = {
    "hook": ("- {file: a.yaml, hook: soon}", ":2: hook: one of pre-apply, post-apply"),
    "delete": ("- {file: a.yaml, hook: pre-apply, hook_delete: [never]}", ":2: hook_delete: a list expected with before-creation"),
    "on": ("- {file: a.yaml, hook: pre-apply, on: [scale]}", ":2: on: a list expected with create, update, rollback"),
    "after": ("- {file: a.yaml, hook: pre-apply, after: [b.yaml]}\n- {file: b.yaml}", ":2: after: Files/kubernetes/b.yaml is no hook"),
    "reverse": ("- {file: a.yaml, hook: pre-apply}\n- {file: b.yaml, after: [a.yaml]}", ":3: after: Files/kubernetes/a.yaml is a hook"),
    "cycle": (
        "- {file: a.yaml, hook: pre-apply, after: [b.yaml]}\n- {file: b.yaml, hook: pre-apply, after: [a.yaml]}",
        "a cycle: ConfigMap/a of Files/kubernetes/a.yaml after ConfigMap/b of Files/kubernetes/b.yaml",
    ),
    "chart": ("- {chart: none}", ":2: chart: an archive of the package, a folder with Chart.yaml, or oci and digest, expected, not none"),
    "binding": ("- {file: vm.yaml}", "vm.yaml, document 1: spec.domain.devices.interfaces[0].slirp: not expected: KubeVirt has removed it"),
    "digest": ("- {chart: {oci: 'oci://host/a', digest: 'sha256:0'}}", ":2: chart: sha256: and 64 hexadecimal digits expected"),
    "no-digest": ("- {chart: {oci: 'oci://host/a'}}", ":2: chart: oci and digest expected, as texts"),
    "tag": (f"- {{chart: {{oci: 'oci://host/a:1.0', digest: 'sha256:{'0' * 64}'}}}}", ":2: chart: a repository without tag expected"),
    "scheme": (f"- {{chart: {{oci: 'https://host/a', digest: 'sha256:{'0' * 64}'}}}}", ":2: chart: oci://<host>/<repository> expected"),
    "port": (f"- {{chart: {{oci: 'oci://host:99999/a', digest: 'sha256:{'0' * 64}'}}}}", ":2: chart: oci://<host>/<repository> expected"),
    "member": (f"- {{chart: {{oci: 'oci://host/a', digest: 'sha256:{'0' * 64}', tag: x}}}}", ":2: tag: no such member; oci, digest expected"),
    "twice": (f"{A_REMOTE}\n{A_REMOTE}", "oci://host/a is listed twice"),
}  # fmt: skip
GOOD: Final = (
    "artifacts:\n- {chart: web}\n- {file: a.yaml, hook: pre-apply, timeout: 7}\n"
    "- {file: b.yaml, hook: post-delete, timeout: 9000}\n"
    "objects: [{object: {kind: Deployment, name: web}, wait: exists}]\n"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """A package with an order for each row, and one with a chart and a hook."""
    folder: Path = tmp_path_factory.mktemp("hooks")
    async with a_gateway(folder) as running:
        orders = {f"{FOLDER}/{name}.order.yaml": f"artifacts:\n{text}\n" for name, (text, _) in BAD.items()}
        files = {f"{FOLDER}/{name}.yaml": A_MAP % name for name in "ab"} | {f"{FOLDER}/vm.yaml": A_MACHINE}
        chart = {f"{FOLDER}/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}\n"}
        more = {**orders, **files, **chart, f"{FOLDER}/good.order.yaml": GOOD}
        onboarded = await running.world.upload(variant(folder, vnfd_id=HOOKED, files=more))
        assert onboarded["onboardingState"] == "ONBOARDED", onboarded
        yield Gateway(running.world, onboarded["id"])


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", BAD)
async def test_bad_hooks_and_charts_are_refused_with_file_and_line(gateway: Gateway, name: str) -> None:
    """MC-141, MC-048, MC-066, MC-006: chapters 4, 7 and 10, Bad input; nothing is stored."""
    refused = (await gateway.bring_up(order_artifact=f"{FOLDER}/{name}.order.yaml")).problem(422)
    (error,) = refused["errors"]
    assert error["pointer"] == "/order_artifact"
    assert BAD[name][1] in error["message"]
    assert (await gateway.world.lcm("GET", "/vnf_instances")).must(200).json == []


@pytest.mark.asyncio(loop_scope="module")
async def test_a_vnf_of_a_chart_shows_the_objects_of_its_hooks(gateway: Gateway) -> None:
    """MC-141, MC-048: beside its resources, without being components; the hook has time of its own."""
    twins = gateway.world.twins
    reported = ANSWERS[APPLY]
    assert isinstance(reported, ObjectsApplied)
    hook = HookFacts(
        api_version="batch/v1", kind="Job", namespace="mine", name="h", uid="u-h", hook="pre-apply", has_succeeded=True
    )
    twins.answers[APPLY] = reported.model_copy(update={"hooks": (hook,)})
    made = (await gateway.bring_up(order_artifact=f"{FOLDER}/good.order.yaml")).must(201).json
    del twins.answers[APPLY]
    last: dict[str, Any] = made["resources"][-1]
    assert (last["kind"], last["name"], last["hook"], last["ready"]) == ("Job", "h", "pre-apply", True)
    assert len(made["resources"]) == len(reported.objects) + 1
    assert "job" not in made["vnf_components"]
    (sent,) = [each.data for each in twins.commands if isinstance(each.data, ApplyObjects)]
    assert sent.def_files == (f"{FOLDER}/a.yaml", f"{FOLDER}/b.yaml")
    # The time of the hooks, and that of the chart and of the object that has a place of its own.
    assert sent.wait_timeout_s == 10_007.0
    assert PASSWORD not in str(made)
    (await gateway.call("DELETE", f"{VNFS}/{made['vnf_id']}")).must(204)
    # A deletion has the time of its own hooks, and of the chart, whose hooks the order does not know.
    (deleted,) = [each for each in twins.commands if isinstance(each.data, DeleteObjects)]
    assert deleted.deadline is not None
    # 40 minutes, the grace period, the hook and the chart.
    assert (deleted.deadline - deleted.time).total_seconds() == 2_400.0 + 10.0 + 9_000.0 + 500.0


@pytest.mark.asyncio(loop_scope="module")
async def test_without_the_helm_program_a_chart_is_refused_by_the_request(gateway: Gateway) -> None:
    """MC-048, and its bad input: a dry run too; a VNF without charts needs no program."""
    gateway.world.charts.lacking = "infra-k8s has no helm"
    before = len((await gateway.world.lcm("GET", "/vnf_instances")).must(200).json)
    for path in (VNFS, f"{VNFS}?dry_run=diff"):
        body = {"cloud_region_id": "op/edge", "csar_id": gateway.csar_id, "order_artifact": f"{FOLDER}/good.order.yaml"}
        refused = (await gateway.call("POST", path, body)).problem(422)
        assert refused["type"] == "helm-missing"
        assert [(each["pointer"], each["message"]) for each in refused["errors"]] == [
            ("/csar_id", f"{FOLDER}/web: infra-k8s has no helm")
        ]
    assert len((await gateway.world.lcm("GET", "/vnf_instances")).must(200).json) == before
    gateway.world.charts.lacking = ""
