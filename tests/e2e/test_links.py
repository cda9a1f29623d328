"""A virtual link on a cluster that kubevnfm has built: defined, shared by two users, degraded, repaired and removed."""

from __future__ import annotations

from callers.user import GRACEFUL, User
from clouds.lab_process import LabControl
from clusters.masters import kubectl
from patience import until_true
from servers.wirings import in_six

LINKS = "/multicloud/v1/virtual-links"
_NADS = "network-attachment-definitions.k8s.cni.cncf.io"
_DEFINITION = f"""apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {_NADS}}}
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: {{plural: network-attachment-definitions, singular: network-attachment-definition, kind: NetworkAttachmentDefinition}}
  versions:
  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}
"""


@in_six
async def test_a_link_is_shared_degraded_repaired_and_removed(user: User, lab: LabControl) -> None:
    """MC-084, MC-087, MC-090, MC-098."""
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
    await kubectl(user.installation.lab, master, f"apply -f - <<'END'\n{_DEFINITION}END")
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

    (await user.call("DELETE", f"{one}?reference=so")).must(200)
    (await user.call("DELETE", f"{one}?reference=other")).must(204)

    async def is_gone() -> bool:
        return not (await user.call("GET", LINKS)).must(200).json

    await until_true(is_gone)
    await user.do(cluster_id, "terminate", GRACEFUL)
    await user.delete(cluster_id)
