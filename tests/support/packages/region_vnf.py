"""A VNF with an order and variables that the multi-cloud API brings up in a region, and that SOL003 scales (multicloud.md)."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from callers.user import User

from packages.package_variants import variant

VNFS = "/multicloud/v1/vnf_instances"
_FOLDER = "Files/kubernetes"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:${tag}", env: [{name: PLACE, value: "$cloud_region_id at $namespace"}]}]}
"""
_SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: '${port}'}]}\n"
)
_ORDER = (
    "artifacts: [{file: deployment.yaml, priority: 2}, {file: service.yaml, priority: 1}]\nvalues: {tag: 1.27-alpine}\n"
    "outputs: {port: {object: {kind: Service, name: web}, jsonpath: 'spec.ports[0].port'}}\n"
)
_FILES = {
    f"{_FOLDER}/artifact-order.yaml": _ORDER,
    f"{_FOLDER}/deployment.yaml": DEPLOYMENT,
    f"{_FOLDER}/service.yaml": _SERVICE,
}


async def comes_up_is_scaled_and_goes(user: User, region: str, folder: Path) -> None:
    """Check a VNF in the region: up by one call, seen and scaled by SOL003, changed by a patch, down by one call."""
    package = await user.upload(variant(folder, vnfd_id=str(uuid4()), files=_FILES))
    asked = {"cloud_region_id": region, "csar_id": package["id"], "namespace": "shop", "values": {"port": 8080}}
    made = (await user.call("POST", VNFS, asked, headers={"Prefer": "wait=120"})).must(201).json
    assert (made["status"], made["outputs"]) == ("READY", {"port": 8080}), made
    assert made["vnf_components"] == {"deployment": ["web"], "namespace": ["shop"], "service": ["web"]}
    one = f"{VNFS}/{made['vnf_id']}"
    read = f"/multicloud/v1/cloud-regions/{region}/resources?namespace=shop&name=web"

    async def seen(kind: str, part: str = "spec") -> dict[str, object]:
        (found,) = (await user.call("GET", f"{read}&{kind}")).must(200).json
        wanted: dict[str, object] = found[part]
        return wanted

    deployment = "apiVersion=apps/v1&kind=Deployment"
    assert "'nginx:1.27-alpine'" in str(await seen(deployment))
    assert f"{region} at shop" in str(await seen(deployment))
    assert "8080" in str(await seen("apiVersion=v1&kind=Service"))
    live = (await user.call("GET", f"{one}/resources?live=true")).must(200).json
    assert {(each["kind"], each["live"], each["ready"]) for each in live} == {
        (kind, "present", True) for kind in ("Deployment", "Namespace", "Service")
    }
    status = (await user.call("GET", f"{one}/status")).must(200).json
    assert (status["ready"], status["resourceCount"]) == (True, 3), status
    of_kind = {each["kind"]: each for each in status["resources"]}
    assert {each["judgement"] for each in of_kind.values()} == {"Current"}
    assert of_kind["Deployment"]["status"]["readyReplicas"] == (await seen(deployment, "status"))["readyReplicas"]
    assert (await user.instance(made["vnf_id"]))["instantiationState"] == "INSTANTIATED"
    await user.do(made["vnf_id"], "scale", {"type": "SCALE_OUT", "aspectId": "web_aspect"})
    scaled = (await seen(deployment))["replicas"]
    assert scaled == 3
    patch = {"values": {"port": 8081}}
    changed = (await user.call("PATCH", one, patch, headers={"Prefer": "wait=120"})).must(200).json
    assert (changed["status"], changed["outputs"]) == ("READY", {"port": 8081}), changed
    assert "8081" in str(await seen("apiVersion=v1&kind=Service"))
    assert (await seen(deployment))["replicas"] == scaled
    listed = (await user.call("GET", f"{VNFS}?cloud_region_id={region}&status=READY")).must(200).json
    assert [each["vnf_id"] for each in listed] == [made["vnf_id"]]

    (await user.call("DELETE", one, headers={"Prefer": "wait=120"})).must(204)
    (await user.call("GET", one)).must(404)
    assert (await user.call("GET", f"{read}&{deployment}")).must(200).json == []


async def hands_over_a_volume(user: User, region: str, folder: Path, volume: str) -> None:
    """Check that a volume is used by one VNF, and with its data by the next one; ``volume``: its path."""
    pod = 'containers: [{name: web, image: "nginx:${tag}", '
    mounted = f"volumes: [{{name: v, persistentVolumeClaim: {{claimName: data}}}}], {pod}volumeMounts: [{{name: v, mountPath: /v}}], "
    files = {**_FILES, f"{_FOLDER}/deployment.yaml": DEPLOYMENT.replace(pod, mounted)}
    package = await user.upload(variant(folder, vnfd_id=str(uuid4()), files=files))
    volume_id = volume.rpartition("/")[2]
    asked = {
        "cloud_region_id": region,
        "csar_id": package["id"],
        "values": {"port": 8080},
        "volumes": [{"persistent_volume_id": volume_id, "claim_name": "data"}],
    }
    patient = {"Prefer": "wait=120"}
    pvs = set()
    for namespace in ("first", "second"):
        made = (await user.call("POST", VNFS, {**asked, "namespace": namespace}, headers=patient)).must(201).json
        assert made["status"] == "READY", made
        shown = (await user.call("GET", volume)).must(200).json
        assert (shown["phase"], shown["in_use_by"]) == ("Bound", [f"vnf:{made['vnf_id']}"])
        assert shown["claim"] == {"namespace": namespace, "name": "data"}
        pvs.add(shown["pv"])
        assert (await user.call("POST", VNFS, {**asked, "namespace": "third"})).must(409).json["errors"]
        assert (await user.call("DELETE", volume)).must(409).json["type"] == "in-use"
        (await user.call("DELETE", f"{VNFS}/{made['vnf_id']}", headers=patient)).must(204)
        assert (await user.call("GET", volume)).must(200).json["phase"] == "Reserved"
    assert len(pvs) == 1
