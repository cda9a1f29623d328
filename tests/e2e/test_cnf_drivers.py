"""CNFs as they are written for Tacker: management drivers, VDUs without workload, reviews; in both API versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from callers.user import FORCEFUL, User, sample_body
from clouds.lab_process import LabControl
from packages.package_variants import variant

PHASES = {
    "instantiate_start": "vnflcm_noop",
    "instantiate_end": "mgmt-drivers-cnf-nodeport",
    "terminate_end": "mgmt-drivers-cnf-nodeport",
    "modify_information_end": "mgmt-container-update",
}
REVIEW = """\
apiVersion: authorization.k8s.io/v1
kind: SelfSubjectAccessReview
spec: {resourceAttributes: {verb: get, resource: pods}}
"""
NODE_PORT = """\
apiVersion: v1
kind: Service
metadata: {name: web-outside}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}
"""
PAGES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-pages}\ndata: {index.html: another page}\n"
FILES = {
    "Files/kubernetes/review.yaml": REVIEW,
    "Files/kubernetes/outside.yaml": NODE_PORT,
    "Files/kubernetes/pages_2.yaml": PAGES,
    "Scripts/configure_lb.sh": 'echo "balancer: $*"\n',
}


async def _package(user: User, folder: Path) -> str:
    vnfd_id = str(uuid4())
    archive = variant(folder, vnfd_id=vnfd_id, phases=PHASES, files=FILES, vdus={"VDU2": "not-deployed"})
    package = await user.upload(archive)
    assert package["onboardingState"] == "ONBOARDED", package
    return vnfd_id


def _request(user: User, cluster: dict[str, Any], address: str) -> dict[str, Any]:
    """Return the instantiate request; a machine of the cluster is the load balancer."""
    body = sample_body("cnf", "instantiate")
    parameters = body["additionalParams"]
    parameters["lcm-kubernetes-def-files"] += ["Files/kubernetes/review.yaml", "Files/kubernetes/outside.yaml"]
    parameters["vdu_mapping"] = {"VDU1": {"kind": "Deployment", "name": "web"}}
    login = {"ssh_ip": address, "ssh_username": "ubuntu", "ssh_password": user.installation.lab.machine_password}
    parameters["lcm-kubernetes-external-lb"] = {"script_path": "Scripts/configure_lb.sh", "external_lb_param": login}
    return user.on_vim(body, cluster)


async def test_a_cnf_with_drivers_is_deployed_changed_and_terminated(
    user: User, v1: User, lab: LabControl, tmp_path: Path
) -> None:
    cluster_id = await user.create(await user.sample("cluster"))
    await user.do(cluster_id, "instantiate", user.cluster())
    cluster = await user.vim_of_cluster(cluster_id)
    address = cluster["interfaceInfo"]["endpoint"].split("://")[1].rpartition(":")[0]
    for caller in (user, v1):
        cnf_id = await caller.create(await _package(caller, tmp_path))
        view = await caller.do(cnf_id, "instantiate", _request(caller, cluster, address))
        assert [step["name"] for step in view["steps"]] == ["apply_objects", "instantiate_end"]
        assert "balancer: -i default,web-outside," in await caller.log(view["id"])
        before = (await user.instance(cnf_id))["instantiatedVnfInfo"]
        assert {vnfc["vduId"] for vnfc in before["vnfcResourceInfo"]} == {"VDU1"}

        other = await _package(caller, tmp_path)
        change = {"vnfdId": other, "metadata": {"configmap_secret_paths": ["Files/kubernetes/pages_2.yaml"]}}
        accepted = (await caller.lcm("PATCH", f"/vnf_instances/{cnf_id}", change)).must(202)
        view = await caller.rest(accepted.headers["Location"].rsplit("/", 1)[-1])
        assert view["state"] == "COMPLETED", view
        shown = await user.instance(cnf_id)
        assert shown["vnfdId"] == other
        after = shown["instantiatedVnfInfo"]
        assert {one["id"] for one in after["vnfcResourceInfo"]}.isdisjoint(
            one["id"] for one in before["vnfcResourceInfo"]
        )
        assert "Files/kubernetes/pages_2.yaml" in after["metadata"]["lcm-kubernetes-def-files"]

        view = await caller.do(cnf_id, "terminate", FORCEFUL)
        assert [step["name"] for step in view["steps"]] == ["delete_objects", "terminate_end", "forget_machines"]
        await caller.delete(cnf_id)
        objects = (await lab.cluster_of(cluster_id))["objects"]
        assert not [name for name, each in objects.items() if cnf_id in each["labels"].values()]
    await user.terminate(cluster_id)
