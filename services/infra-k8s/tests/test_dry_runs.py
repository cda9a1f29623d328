"""Dry runs on the lab's cluster: what they say, and that nothing is made or stored (multicloud.md MC-033)."""

from __future__ import annotations

from typing import Any

from kubevnfm_clients.multicloud.dry_runs import MOST_FIELDS, DryRunMode, DryRunOrder, DryRunReport
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.handlers.dry_runs import DryRunHandlers

WEB = ObjectKey("apps/v1", "Deployment", "default", "web")


async def run(
    site: Any, files: dict[str, Any], mode: DryRunMode = "diff", *, instance: str = "i1", **more: Any
) -> DryRunReport:
    package = site.packages.add(files, package_id=f"p-{instance}-other")
    order = DryRunOrder(
        vnf_instance_id=instance, package=package, vim=site.vim, def_files=tuple(files), mode=mode, **more
    )
    return await DryRunHandlers(**vars(site.handlers)).run(order)


def actions(report: DryRunReport) -> dict[str, str | None]:
    return {f"{each.kind} {each.name}": each.action for each in report.objects}


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def present(cluster: Cluster, key: ObjectKey) -> Body:
    resource = await cluster.resource(*key.api_kind)
    assert resource is not None
    found = await cluster.get(resource, key)
    assert found is not None
    return found


async def test_a_dry_run_says_what_would_change(site: Any, cluster: Cluster, workload: Any) -> None:
    """MC-033: created, updated, deleted, or left alone; objects of others are named; nothing is made or stored."""
    web = workload()
    await site.apply({"a.yaml": web, "b.yaml": a_map("gone"), "c.yaml": a_map("same", a="b")})
    before, kept = await present(cluster, WEB), await site.handlers.releases.get("i1")
    changed = workload(image="nginx:2")
    changed["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "s"})
    many = a_map("many", **{f"k{number}": "v" for number in range(MOST_FIELDS + 1)})
    files = {"a.yaml": changed, "c.yaml": a_map("same", a="b"), "d.yaml": many}
    report = await run(site, files)
    assert report.summary == {"update": 1, "unchanged": 1, "create": 1, "delete": 1}
    assert actions(report) == {
        "Deployment web": "update", "ConfigMap same": "unchanged", "ConfigMap many": "create", "ConfigMap gone": "delete",
    }  # fmt: skip
    deployment = report.objects[0]
    assert (deployment.restarts, deployment.checked, deployment.file) == (True, True, "a.yaml")
    image, side = deployment.fields
    assert (image.path, image.before, image.after) == (
        "/spec/template/spec/containers/0/image", "nginx:1.27", "nginx:2",
    )  # fmt: skip
    assert (side.path, side.before) == ("/spec/template/spec/containers/1", None)
    assert await present(cluster, WEB) == before
    assert await site.handlers.releases.get("i1") == kept
    assert actions(await run(site, {"c.yaml": a_map("same", a="b")}, instance="i2")) == {"ConfigMap same": "adopt"}

    await site.apply({"d.yaml": a_map("many", text="x")}, instance="i3")
    many["data"]["text"] = "x" * 5000
    (shown,) = (await run(site, {"d.yaml": many}, instance="i3")).objects
    assert (len(shown.fields), shown.truncated, shown.restarts) == (MOST_FIELDS, True, False)


async def test_rendered_objects_show_no_secret(site: Any) -> None:
    """MC-033: nor does the API server's own dry run of them; and nothing is looked up to render."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"code": "open-sesame"}}
    for mode in ("render", "server"):
        (shown,) = (await run(site, {"s.yaml": secret}, mode)).objects
        assert (shown.action, shown.checked, shown.fields) == (None, mode == "server", ())
        assert shown.object is not None
        assert (shown.object["stringData" if mode == "render" else "data"]) == {"code": "***"}
        assert "kubevnfm.io/vnf-instance-id" in shown.object["metadata"]["labels"]
