"""A CNF of twelve parts whose package orders its artifacts: priorities, variables, a namespace of its own (multicloud.md)."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from pathlib import Path
from typing import Any
from uuid import uuid4

from callers.user import FORCEFUL, User, sample_body
from clouds.lab_process import LabControl
from clusters.masters import kubectl
from patience import until_true

from packages.package_variants import variant

PARTS = [f"part{number:02}" for number in range(1, 13)]
FOLDER = "Files/kubernetes"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: %(name)s}
spec:
  replicas: $replicas
  selector: {matchLabels: {app: %(name)s}}
  template:
    metadata: {labels: {app: %(name)s}}
    spec: {containers: [{name: main, image: "nginx:${tag}", env: [{name: PLACE, value: "at $namespace in $zone"}]}]}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: %(name)s}
spec: {selector: {app: %(name)s}, ports: [{port: "${db.port}"}]}
"""
HIDDEN = """\
---
apiVersion: v1
kind: Secret
metadata: {name: code}
stringData: {code: "$code"}
"""
RULES = {
    "properties": {"zone": {"enum": ["a", "b"], "default": "b"}, "db": {"properties": {"port": {"maximum": 65535}}}}
}


def files() -> dict[str, str]:
    """Return twelve Deployments and twelve Services; each Service is applied before its Deployment, the parts backwards."""
    found: dict[str, str] = {}
    lines = ["artifacts:"]
    for priority, name in enumerate(reversed(PARTS)):
        found[f"{FOLDER}/{name}-deployment.yaml"] = DEPLOYMENT % {"name": name}
        found[f"{FOLDER}/{name}-service.yaml"] = SERVICE % {"name": name}
        lines += [
            f"- {{file: {name}-deployment.yaml, priority: {2 * priority + 1}}}",
            f"- {{file: {name}-service.yaml, priority: {2 * priority}, wait: exists}}",
        ]
    found[f"{FOLDER}/{PARTS[0]}-service.yaml"] += HIDDEN
    found[f"{FOLDER}/values.schema.json"] = json.dumps(RULES)
    lines.append("values: {replicas: 1, tag: 1.27-alpine, db: {port: 80}}")
    return {**found, f"{FOLDER}/artifact-order.yaml": "\n".join(lines) + "\n"}


APPLIED = [f"{kind}/{name}" for name in reversed(PARTS) for kind in ("Service", "Deployment")]


async def created(user: User, master: str, namespace: str, kind: str) -> list[dict[str, Any]]:
    """Return the objects of a kind in a namespace of the cluster."""
    text = await kubectl(user.installation.lab, master, f"get {kind} -n {namespace} -o json")
    items: list[dict[str, Any]] = json.loads(text)["items"]
    return items


async def present(lab: LabControl, cluster_id: str, cnf_id: str) -> list[str]:
    """Return the CNF's Deployments and Services that exist, in the order in which they were applied."""
    found = (await lab.cluster_of(cluster_id))["objects"]
    mine = {place for place, one in found.items() if cnf_id in one["labels"].values()}
    names = {f"{kind}/{name}" for kind, _, name in (place.split("/") for place in mine)}
    return [each for each in APPLIED if each in names]


async def removed_in_reverse(lab: LabControl, cluster_id: str, cnf_id: str, ending: asyncio.Task[Any]) -> set[int]:
    """Check, until the operation has ended, that what was applied last goes first; return how many objects were seen."""
    seen: set[int] = set()

    async def has_ended() -> bool:
        left = await present(lab, cluster_id, cnf_id)
        assert left == APPLIED[: len(left)]
        seen.add(len(left))
        return ending.done()

    # Each look has the whole lab; without a pause there are hundreds of them in a second.
    await until_true(has_ended, pause_s=0.03)
    return seen


async def comes_up_in_order_and_goes_in_reverse(user: User, lab: LabControl, cluster_id: str, folder: Path) -> None:
    """Check a CNF of twelve parts on the cluster; what fails names priority and object, and is rolled back."""
    vnfd_id = str(uuid4())
    await user.upload(variant(folder, vnfd_id=vnfd_id, files=files()))
    cnf_id = await user.create(vnfd_id)
    namespace = f"vnf-{cnf_id[:8]}"
    on_vim = user.on_vim(sample_body("cnf", "instantiate"), await user.vim_of_cluster(cluster_id))

    code: dict[str, Any] = {"code": {"$secret": "open-sesame-5"}}
    bad = {"values": {"tag": "bad", **code}, "wait_timeout": 4}
    async with lab.fault("program", "image nginx:bad", effect="hang"):
        operation = await user.start(cnf_id, "instantiate", {**on_vim, "additionalParams": bad})
        view = await user.rest(operation)
        assert view["state"] == "FAILED_TEMP"
        detail = (await user.occurrence(operation))["error"]["detail"]
        assert f"priority 2 of 24: Deployment {namespace}/part12" in detail
        assert await present(lab, cluster_id, cnf_id) == APPLIED[:2]
        said = [task["message"] for task in view["tasks"] if task["task"] == "apply"]
        assert any("Deployment" in message for message in said), said
        assert (await user.act(operation, "rollback"))["state"] == "ROLLED_BACK"
    assert await present(lab, cluster_id, cnf_id) == []

    await user.do(cnf_id, "instantiate", {**on_vim, "additionalParams": {"values": {"db": {"port": 8080}, **code}}})
    master = await lab.master_of(cluster_id)
    services = await created(user, master, namespace, "services")
    deployments = await created(user, master, namespace, "deployments")
    by_version = sorted(services, key=lambda each: int(each["metadata"]["resourceVersion"]))
    assert [each["metadata"]["name"] for each in by_version] == PARTS[::-1]
    assert {each["spec"]["ports"][0]["port"] for each in services} == {8080}
    at = {
        f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["creationTimestamp"]
        for each in (*services, *deployments)
    }
    assert [at[each] for each in APPLIED] == sorted(at.values())
    assert {each["spec"]["replicas"] for each in deployments} == {1}
    # A value that is secret although its name is not.
    (hidden,) = await created(user, master, namespace, "secrets")
    assert b64decode(hidden["data"]["code"]) == b"open-sesame-5"
    (container,) = deployments[0]["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"][0]["value"]) == (
        "nginx:1.27-alpine",
        # The schema's default.
        f"at {namespace} in b",
    )
    ignored = (await user.instance(cnf_id))["instantiatedVnfInfo"]["metadata"]["kubevnfm_ignored_artifacts"]
    assert f"{FOLDER}/configmap.yaml" in ignored

    ending = asyncio.create_task(user.do(cnf_id, "terminate", FORCEFUL))
    assert len(await removed_in_reverse(lab, cluster_id, cnf_id, ending)) > 3
    await ending
    left = (await lab.cluster_of(cluster_id))["objects"]
    assert not [place for place in left if namespace in place]
    await user.delete(cnf_id)
