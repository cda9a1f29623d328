"""A cluster as a cloud region of the multi-cloud API: registered by its kubeconfig, used by a CNF, read, removed."""

from __future__ import annotations

from pathlib import Path

from callers.user import GRACEFUL, User, sample_body
from clouds.lab_process import LabControl
from clusters.kubeconfigs import admin_kubeconfig
from packages.region_vnf import comes_up_is_scaled_and_goes, hands_over_a_volume
from servers.wirings import deep_in_single

REGIONS = "/multicloud/v1/cloud-regions"
VOLUMES = "/multicloud/v1/persistent-volumes"


@deep_in_single
async def test_a_cluster_is_registered_as_a_region_carries_a_cnf_and_is_removed(
    user: User, lab: LabControl, tmp_path: Path
) -> None:
    """MC-001, MC-042, MC-043, MC-049, MC-053, MC-057, MC-060, MC-071, MC-073, MC-077, MC-100, MC-101, MC-102, MC-104, MC-118, MC-139."""
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", user.cluster())
    kubernetes = await lab.cluster_of(cluster_id)
    encoded = await admin_kubeconfig(user, lab, cluster_id)
    wanted = {"cloud_owner": "op", "cloud_region": "edge", "kubeconfig": encoded}
    region = (await user.call("POST", REGIONS, wanted)).must(201).json
    one = f"{REGIONS}/op/edge"
    assert (region["endpoint"], region["auth"]) == (kubernetes["endpoint"], "token")
    assert (await user.vims())["op/edge"]["id"] == region["vim_id"]
    features = (await user.call("GET", f"{one}/features")).must(200).json
    assert {node["name"] for node in features["nodes"]} == {node["name"] for node in kubernetes["nodes"]}

    source = {"nfs": {"server": "192.0.2.9", "path": "/data"}}
    volume = {"cloud_region_id": "op/edge", "name": "data", "size": "1Gi", "access_modes": ["ReadWriteOnce"]}
    made = (await user.call("POST", VOLUMES, {**volume, "source": source})).must(201).json
    assert (made["phase"], made["pv"]) == ("Reserved", f"kubevnfm-{made['id']}")
    assert (await user.call("GET", VOLUMES)).must(200).json == [made]
    await hands_over_a_volume(user, "op/edge", tmp_path, f"{VOLUMES}/{made['id']}")
    removed = (await user.call("DELETE", f"{VOLUMES}/{made['id']}")).must(200).json
    assert (removed["data"], removed["where"]) == ("kept", "nfs 192.0.2.9:/data")

    await comes_up_is_scaled_and_goes(user, "op/edge", tmp_path)
    cnf_id = await user.create(await user.sample("cnf"))
    on_it = {"region": {"vimId": region["vim_id"], "vimType": "ETSINFV.KUBERNETES.V_1"}}
    await user.do(cnf_id, "instantiate", {**sample_body("cnf", "instantiate"), "vimConnectionInfo": on_it})
    query = "apiVersion=apps/v1&kind=Deployment&namespace=default&name=web"
    (found,) = (await user.call("GET", f"{one}/resources?{query}")).must(200).json
    assert cnf_id in found["metadata"]["labels"].values()
    assert cnf_id in (await user.call("DELETE", one)).must(409).json["detail"]

    # Each service asks vim-registry before it changes something in the region.
    (await user.call("PUT", f"{one}/suspension", {"reason": "new switches"})).must(200)
    ending = await user.ask(cnf_id, "terminate", GRACEFUL)
    for refused in (ending, await user.call("POST", VOLUMES, {**volume, "source": source})):
        assert (refused.must(409).json["type"], "new switches" in refused.json["detail"]) == ("suspended", True)
    (await user.call("DELETE", f"{one}/suspension")).must(204)
    (await user.call("PUT", f"{one}/kubeconfig", {"kubeconfig": encoded})).must(200)
    await user.terminate(cnf_id)
    (await user.call("DELETE", one)).must(204)
    assert "op/edge" not in await user.vims()
    await user.do(cluster_id, "terminate", GRACEFUL)
    await user.delete(cluster_id)
