"""A virtual link on a cluster that kubevnfm has built: defined, shared by two users, degraded, repaired and removed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from callers.user import GRACEFUL, User, sample_body
from clouds.lab_process import LabControl
from clusters.masters import kubectl
from packages.package_variants import variant
from patience import until_true
from servers.wirings import deep_in_single
from worlds.link_world import definition

LINKS = "/multicloud/v1/virtual-links"
_NADS = "network-attachment-definitions.k8s.cni.cncf.io"
_DEFINITION = json.dumps(
    definition("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "Namespaced")
)


async def two_vnfs_hold(user: User, lab: LabControl, cluster_id: str, link: str, folder: Path) -> None:
    """Have two CNFs on a link that two other users have; processes are killed while one takes it, and gives it back."""
    onboarded = await user.upload(variant(folder, cps={"oam": None}, vnfd_id=str(uuid4())))
    assert onboarded["onboardingState"] == "ONBOARDED", onboarded
    vim = await user.vim_of_cluster(cluster_id)
    body = user.on_vim(sample_body("cnf", "instantiate"), vim)
    shown = (await user.call("GET", link)).must(200).json
    body["extVirtualLinks"] = [{"id": "outer", "resourceId": shown["id"], "extCps": [{"cpdId": "oam"}]}]
    refused = {**body, "extVirtualLinks": [{**body["extVirtualLinks"][0], "resourceId": "none"}]}
    vnfs = [await user.create(onboarded["vnfdId"]) for _ in range(2)]
    assert "extVirtualLinks[0]/resourceId" in (await user.ask(vnfs[0], "instantiate", refused)).must(422).detail

    async def users() -> list[str]:
        return sorted((await user.call("GET", link)).must(200).json["references"])

    master = await lab.master_of(cluster_id)
    for number, vnf_id in enumerate(vnfs):
        namespace = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: vnf{number}}}\n"
        await kubectl(user.installation.lab, master, f"apply -f - <<'END'\n{namespace}END")
        named = {**body, "additionalParams": {**body["additionalParams"], "namespace": f"vnf{number}"}}
        if number == 0:
            await killed_in(user, vnf_id, "instantiate", named)
        else:
            await user.do(vnf_id, "instantiate", named)
    assert await users() == sorted(["other", "so", *(f"vnf:{each}" for each in vnfs)])
    web = await kubectl(user.installation.lab, master, "get deployment web -n vnf0 -o yaml")
    assert "k8s.v1.cni.cncf.io/networks" in web
    await killed_in(user, vnfs[0], "terminate", GRACEFUL)
    assert await users() == sorted(["other", "so", f"vnf:{vnfs[1]}"])
    await user.do(vnfs[1], "terminate", GRACEFUL)
    assert await users() == ["other", "so"]
    for vnf_id in vnfs:
        await user.delete(vnf_id)


async def killed_in(user: User, vnf_id: str, task: str, body: Mapping[str, Any]) -> None:
    """Carry out an operation in which the process that holds and releases links is killed."""
    operation = await user.start(vnf_id, task, body)
    for process in set(user.installation.processes).intersection({"infra-k8s", "kubevnfm"}):
        await asyncio.to_thread(user.installation.kill, process)
        await asyncio.to_thread(user.installation.start_one, process)
    view = await user.rest(operation)
    assert view["state"] == "COMPLETED", view


@deep_in_single
async def test_a_link_is_shared_degraded_repaired_and_removed(user: User, lab: LabControl, tmp_path: Path) -> None:
    """MC-060, MC-069, MC-084, MC-086, MC-087, MC-090, MC-098, MC-099."""
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", user.cluster())
    (vim_id,) = [each["id"] for each in (await user.vims()).values() if each["type"] == "kubernetes"]
    master = await lab.master_of(cluster_id)
    wanted = {
        "cloud_region_id": vim_id,
        "name": "protected",
        "type": "nad",
        "spec": {"macvlan": {"master": "eth1", "mode": "bridge"}},
        "reference": "so",
        "namespaces": ["default"],
    }
    assert (await user.call("POST", LINKS, wanted)).must(422).json["type"] == "region-lacks"
    await kubectl(user.installation.lab, master, f"apply -f - <<'END'\n{_DEFINITION}\nEND")
    link = (await user.call("POST", LINKS, wanted)).must(201).json
    assert (link["status"], link["use_count"]) == ("READY", 1)
    shared = (await user.call("POST", LINKS, {**wanted, "reference": "other"})).must(200).json
    assert (shared["id"], shared["use_count"]) == (link["id"], 2)
    one = f"{LINKS}/{link['id']}"
    assert "macvlan" in await kubectl(user.installation.lab, master, f"get {_NADS} protected -o yaml")

    await kubectl(user.installation.lab, master, f"delete {_NADS} protected")
    repaired = (await user.call("POST", LINKS, wanted)).must(200).json
    assert (repaired["status"], repaired["use_count"]) == ("READY", 2)
    assert repaired["resources"] != link["resources"]

    await two_vnfs_hold(user, lab, cluster_id, one, tmp_path)
    (await user.call("DELETE", f"{one}?reference=so")).must(200)
    (await user.call("DELETE", f"{one}?reference=other")).must(204)

    async def is_gone() -> bool:
        return not (await user.call("GET", LINKS)).must(200).json

    await until_true(is_gone)
    await user.do(cluster_id, "terminate", GRACEFUL)
    await user.delete(cluster_id)
