"""Site files on the lab: the sample, and a cloud region with a network and a volume on the cluster that it builds."""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Final
from uuid import uuid4

from callers.command_line import kubevnfm
from callers.user import User
from clouds.lab_process import LabControl
from clusters.masters import kubectl
from worlds.link_world import definition

SAMPLES: Final = Path(__file__).parents[2] / "deploy/samples"
PLANT: Final = """
site: plant
regions:
  edge: {cloud_owner: op, kubeconfig: {valueFrom: {file: edge.kubeconfig}}, labels: {floor: "3"}}
links:
  lan: {region: edge, type: nad, spec: {macvlan: {master: eth1, mode: bridge}}, namespaces: [default]}
volumes:
  data:
    region: edge
    size: 1Gi
    access_modes: [ReadWriteOnce]
    labels: {tier: gold}
    source: {nfs: {server: 192.0.2.9, path: /plant}}
"""


def own_sample(folder: Path) -> Path:
    """Return the sample in a folder, whose packages have ids of their own: other tests have onboarded those of the samples."""
    ids: dict[str, str] = {}
    for name in ("site", "cluster", "cnf"):
        shutil.copytree(SAMPLES / name, folder / name)
        for file in (folder / name).rglob("*.yaml"):
            text = file.read_text()
            for given in re.findall(r"descriptor_id:.*?([0-9a-f]{8}-[0-9a-f-]{27})", text):
                text = text.replace(given, ids.setdefault(given, str(uuid4())))
            file.write_text(text)
    assert ids
    return folder / "site/lab.yaml"


async def apply(user: User, file: Path, *words: str, code: int = 0) -> list[str]:
    """Run a verb for a file; return its lines, sorted. No secret is in them."""
    cloud = user.installation.lab
    environment = {
        "LAB_AUTH_URL": str(cloud.endpoints["auth_url"]),
        "LAB_PASSWORD": cloud.vim_password,
        "MACHINE_PASSWORD": cloud.machine_password,
    }
    verb, *options = words
    ran = await kubevnfm(user.installation.url, verb, "-f", str(file), *options, environment=environment)
    assert ran.code == code, ran.out + ran.err
    return sorted(ran.out.splitlines())


async def test_the_sample_is_applied_extended_by_another_site_and_removed(
    user: User, lab: LabControl, tmp_path: Path
) -> None:
    sample = own_sample(tmp_path)
    assert await apply(user, sample, "apply", "--wait") == [
        "package/cluster uploaded", "package/web uploaded", "vim/cloud created", "vnf/k8s created, instantiated",
        "vnf/web created, instantiated", "volume/data created",
    ]  # fmt: skip
    assert await apply(user, sample, "diff", "--exit-code") == []

    (cluster,) = [each["id"] for each in (await user.lcm("GET", "/vnf_instances?filter=(eq,vnfInstanceName,k8s)")).json]
    master = await lab.master_of(cluster)
    crd = definition(
        "k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "Namespaced"
    )
    await kubectl(user.installation.lab, master, f"apply -f - <<'END'\n{json.dumps(crd)}\nEND")
    get = "get secret -n kubevnfm-system vnfm-admin-token -o jsonpath={.data.token}"
    token = base64.b64decode(await kubectl(user.installation.lab, master, get)).decode()
    access = (await user.vim_of_cluster(cluster))["interfaceInfo"]
    ca = base64.b64encode(access["ssl_ca_cert"].encode()).decode()
    kubeconfig = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": access["endpoint"], "certificate-authority-data": ca}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    (tmp_path / "edge.kubeconfig").write_text(json.dumps(kubeconfig) + "\n")
    plant = tmp_path / "plant.yaml"
    plant.write_text(PLANT)
    assert await apply(user, plant, "apply") == ["link/lan created", "region/edge created", "volume/data created"]
    assert await apply(user, plant, "diff", "--exit-code") == []
    changed = PLANT.replace("gold", "silver").replace('"3"', '"4"').replace("[default]", "[default, other]")
    plant.write_text(changed)
    assert await apply(user, plant, "diff") == [
        '    labels/floor: "3" -> "4"', '    labels/tier: "gold" -> "silver"', "    namespaces: other (new)",
        "~ link/lan: update", "~ region/edge: update", "~ volume/data: update",
    ]  # fmt: skip
    lan, *others = await apply(user, plant, "apply")
    assert others == ["region/edge updated", "volume/data updated"]
    assert lan.startswith("link/lan updated (it is PENDING: "), "the namespace does not exist"
    assert await apply(user, plant, "diff", "--exit-code") == []
    (tmp_path / "edge.kubeconfig").write_text(json.dumps(kubeconfig, indent=1))
    assert await apply(user, plant, "diff", "--exit-code", code=1) != [], "another kubeconfig is found by its hash"
    assert "region/edge updated" in await apply(user, plant, "apply")
    assert await apply(user, plant, "delete") == ["link/lan deleted", "region/edge deleted", "volume/data deleted"]

    assert await apply(user, sample, "delete") == [
        "package/cluster deleted", "package/web deleted", "vim/cloud deleted", "vnf/k8s terminated, deleted",
        "vnf/web terminated, deleted", "volume/data deleted",
    ]  # fmt: skip
    assert await apply(user, sample, "diff") != []
