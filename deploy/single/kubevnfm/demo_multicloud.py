"""The fourth demo: two clusters as cloud regions, and VNFs with order, variables, a shared network and a volume."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any, Final

import asyncssh
from kubevnfm_kit.json_types import JsonObject

from kubevnfm.client import GatewayClient
from kubevnfm.demo import Demo, DemoFailed, carry_out, register_openstack, remove, request_of, say, show_cluster, upload

_API: Final = "/multicloud/v1"
_REGIONS: Final = ("plant-1", "plant-2")
_LOOK_S: Final = 0.5
_KUBECTL: Final = "sudo KUBECONFIG=/etc/kubernetes/admin.conf kubectl"
_ACCESS: Final = "get secret -n kubevnfm-system vnfm-admin-token -o jsonpath={.data.token}"
_DEFINITIONS: Final = "network-attachment-definitions.k8s.cni.cncf.io"
_MULTUS: Final = f"""apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {_DEFINITIONS}}}
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: {{plural: network-attachment-definitions, singular: network-attachment-definition, kind: NetworkAttachmentDefinition}}
  versions:
  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}
"""
"""The kind that the Multus plug-in brings to a cluster: the lab's clusters have no Multus."""


async def _job(client: GatewayClient, endpoints: JsonObject, samples: Path) -> None:
    await register_openstack(client, endpoints)
    await upload(client, samples, "cluster")
    package = await client.onboard(samples / "edge.zip")
    say(f"   edge: {package['vnfProductName']} {package['vnfSoftwareVersion']}, package {package['id']}")

    say("\n3. Instantiate two clusters, and register each as a cloud region by its kubeconfig")
    clusters = [await _cluster(client, name) for name in _REGIONS]
    for (_, access), name in zip(clusters, _REGIONS, strict=True):
        await _register(client, endpoints, access, name)

    say("\n4. Define a network that VNFs of the first region share")
    await _on_master(endpoints, clusters[0][1], "apply -f -", _MULTUS)
    link = await _call(client, "POST", "/virtual-links", {
        "cloud_region_id": f"operator/{_REGIONS[0]}", "name": "lan", "type": "nad", "reference": "demo",
        "namespaces": ["default"], "spec": {"macvlan": {"master": "eth1", "mode": "bridge"}},
    })  # fmt: skip
    say(f"   virtual link {link['name']} is {link['status']}, used by {link['use_count']}")

    say("\n5. Bring up three edge platforms: one request each")
    asked = _edge(package["id"])
    with_link = {**asked, "networks": [{"vdu_id": "router", "virtual_link_id": link["id"], "interface": "lan"}]}
    vnfs = [
        await _bring_up(client, {**with_link, "vnf_instance_name": "first", "namespace": "first"}, _REGIONS[0]),
        await _bring_up(client, {**with_link, "vnf_instance_name": "second", "namespace": "second"}, _REGIONS[0]),
        await _bring_up(client, {**asked, "vnf_instance_name": "third", "namespace": "third"}, _REGIONS[1]),
    ]
    await _show_users(client, link["id"], 3)
    await _show_pods(client, vnfs)

    say("\n6. Bring up one more in both regions by one call, with values for each")
    both = await _bring_up_in_all(client, {**asked, "vnf_instance_name": "everywhere"})
    for vnf in both:
        await _call(client, "DELETE", f"/vnf_instances/{vnf['vnf_id']}", prefer="wait=120")
        await _must_be_gone(client, vnf)

    say("\n7. Hand a volume over from one VNF to the next, in another namespace")
    await _hand_over(client, asked)

    say("\n8. Take all down: the link goes with its last user")
    for vnf in vnfs:
        await _call(client, "DELETE", f"/vnf_instances/{vnf['vnf_id']}", prefer="wait=120")
        await _must_be_gone(client, vnf)
        if vnf is not vnfs[-1]:
            await _show_users(client, link["id"], 3 - vnfs.index(vnf) - 1)
    await _call(client, "DELETE", f"/virtual-links/{link['id']}?reference=demo")
    for name in _REGIONS:
        await _call(client, "DELETE", f"/cloud-regions/operator/{name}")
    for cluster_id, _ in clusters:
        await remove(client, cluster_id, "cluster")


async def _cluster(client: GatewayClient, name: str) -> tuple[str, JsonObject]:
    """Instantiate a cluster; return the instance's id, and the API server that it has."""
    cluster_id = str((await client.create({**request_of("cluster", "create"), "vnfInstanceName": name}))["id"])
    await carry_out(client, cluster_id, "instantiate", request_of("cluster", "instantiate"))
    connection = await show_cluster(client, cluster_id)
    return cluster_id, dict(connection["interfaceInfo"])


async def _register(client: GatewayClient, endpoints: JsonObject, access: JsonObject, name: str) -> None:
    """Register a cluster by a kubeconfig, as its administrator would write one."""
    token = base64.b64decode(await _on_master(endpoints, access, _ACCESS)).decode()
    ca = base64.b64encode(access["ssl_ca_cert"].encode()).decode()
    kubeconfig = json.dumps({
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": access["endpoint"], "certificate-authority-data": ca}}],
        "users": [{"name": name, "user": {"token": token}}],
    })  # fmt: skip
    region = await _call(client, "POST", "/cloud-regions", {
        "cloud_owner": "operator", "cloud_region": name, "labels": {"site": name},
        "kubeconfig": base64.b64encode(kubeconfig.encode()).decode(),
    })  # fmt: skip
    say(f"   region {region['id']}: Kubernetes {region['server_version']}, {region['status']}, VIM {region['vim_id']}")


async def _on_master(endpoints: JsonObject, access: JsonObject, command: str, given: str = "") -> str:
    """Return what kubectl prints on the master of a cluster of the lab. Raises DemoFailed."""
    address = access["endpoint"].removeprefix("https://").rpartition(":")[0]
    node = request_of("cluster", "instantiate")["additionalParams"]["k8s_cluster_installation_param"]["master_node"]
    login = {name: node[name] for name in ("username", "password")}
    # The host keys of the lab's machines are new in each run, so there is none to compare with.
    async with asyncssh.connect(address, endpoints["ssh_port"], known_hosts=None, **login) as machine:
        ran = await machine.run(f"{_KUBECTL} {command}", input=given)
    if ran.exit_status != 0:
        raise DemoFailed(f"kubectl {command} on {address}: {str(ran.stderr).strip()}")
    return str(ran.stdout)


def _edge(package_id: str) -> JsonObject:
    """Return the request of the sample, for its package."""
    body = request_of("edge", "bring_up")
    return {**{name: value for name, value in body.items() if name != "networks"}, "csar_id": package_id}


async def _bring_up(client: GatewayClient, asked: JsonObject, region: str) -> JsonObject:
    """Bring a VNF up in a region, and return it. Raises DemoFailed."""
    wanted = {**asked, "cloud_region_id": f"operator/{region}"}
    vnf: JsonObject = await _call(client, "POST", "/vnf_instances", wanted, prefer="wait=120")
    if vnf["status"] != "READY":
        raise DemoFailed(f"{vnf['vnf_instance_name']} is {vnf['status']}: {vnf['status_detail']}")
    parts = ", ".join(f"{len(names)} {kind}" for kind, names in sorted(vnf["vnf_components"].items()))
    say(
        f"   {vnf['vnf_instance_name']} in {vnf['cloud_region_id']}, namespace {vnf['namespace']}: {vnf['status']}; {parts}"
    )
    return vnf


async def _bring_up_in_all(client: GatewayClient, asked: JsonObject) -> list[JsonObject]:
    """Bring a VNF up in each region that has a site, by one request; return the VNFs. Raises DemoFailed."""
    regions = {"selector": {"match_expressions": [{"key": "site", "operator": "Exists"}]}}
    values = {f"operator/{name}": {"site": name} for name in _REGIONS}
    common = {name: value for name, value in asked.items() if name not in {"cloud_region_id", "namespace"}}
    wanted = {**common, "regions": regions, "values_by_region": values, "parallel": 2}
    group: JsonObject = await _call(client, "POST", "/vnf_instances", wanted)
    while group["status"] == "RUNNING":
        await asyncio.sleep(_LOOK_S)
        group = await _call(client, "GET", f"/group-operations/{group['id']}")
    for each in group["regions"]:
        say(f"   {each['cloud_region_id']}: {each['state']} {each.get('error', {}).get('detail', '')}".rstrip())
    if group["status"] != "COMPLETED" or len(group["regions"]) != len(_REGIONS):
        raise DemoFailed(f"the group operation is {group['status']}")
    found: list[JsonObject] = await _call(client, "GET", f"/vnf_instances?group_operation={group['id']}")
    return found


async def _hand_over(client: GatewayClient, asked: JsonObject) -> None:
    """Have two VNFs use one persistent volume, the second when the first is gone. Raises DemoFailed."""
    region = f"operator/{_REGIONS[0]}"
    volume = await _call(client, "POST", "/persistent-volumes", {
        "cloud_region_id": region, "name": "data", "size": "1Gi", "access_modes": ["ReadWriteOnce"],
        "source": {"nfs": {"server": "192.0.2.9", "path": "/data"}},
    })  # fmt: skip
    mounted = request_of("edge", "bring_up_with_volume")
    uses = [{**each, "persistent_volume_id": volume["id"]} for each in mounted["volumes"]]
    for name in ("writer", "reader"):
        body = {**asked, "values": mounted["values"], "volumes": uses, "vnf_instance_name": name, "namespace": name}
        vnf = await _bring_up(client, body, _REGIONS[0])
        read = f"/cloud-regions/{region}/resources?apiVersion=v1&kind=PersistentVolumeClaim&namespace={name}&name=data"
        (claim,) = await _call(client, "GET", read)
        bound = claim["spec"]["volumeName"]
        if bound != volume["pv"]:
            raise DemoFailed(f"the claim of {name} has {bound}, not {volume['pv']}")
        say(f"   {name} has claim data in its namespace, bound to {bound}")
        await _call(client, "DELETE", f"/vnf_instances/{vnf['vnf_id']}", prefer="wait=120")
        await _must_be_gone(client, vnf)
        left = await _call(client, "GET", f"/persistent-volumes/{volume['id']}")
        say(f"   volume {left['name']} is still there: {left['phase']}, {left['size']}")
    gone = await _call(client, "DELETE", f"/persistent-volumes/{volume['id']}")
    say(f"   volume {volume['name']} is deleted, its data are {gone['data']}: {gone['where']}")


async def _must_be_gone(client: GatewayClient, vnf: JsonObject) -> None:
    """Check that the region has no namespace of a VNF any more. Raises DemoFailed."""
    read = f"/cloud-regions/{vnf['cloud_region_id']}/resources?apiVersion=v1&kind=Namespace&name={vnf['namespace']}"
    if await _call(client, "GET", read):
        raise DemoFailed(f"namespace {vnf['namespace']} is still there")
    say(f"   {vnf['vnf_instance_name']} is gone, and its namespace")


async def _show_users(client: GatewayClient, link_id: str, expected: int) -> None:
    """Show who uses a link. Raises DemoFailed."""
    link = await _call(client, "GET", f"/virtual-links/{link_id}")
    say(f"   link {link['name']} is {link['status']}, used by {link['use_count']}")
    if link["use_count"] != expected:
        raise DemoFailed(f"the link has {link['use_count']} users: {link['references']}")


async def _show_pods(client: GatewayClient, vnfs: list[JsonObject]) -> None:
    """Show the pods of VNFs as the inventory has them."""
    for vnf in vnfs:
        found: Any = await _call(client, "GET", f"/inventory/resources?vnf_id={vnf['vnf_id']}&kind=Pod")
        pods = ", ".join(f"{each['name']} on {each.get('node')}" for each in found)
        say(f"   inventory of {vnf['vnf_instance_name']}: {pods}")


async def _call(
    client: GatewayClient, method: str, path: str, body: JsonObject | None = None, *, prefer: str | None = None
) -> Any:
    found, _ = await client.call(method, f"{_API}{path}", body, headers={"Prefer": prefer} if prefer else None)
    return found


MULTICLOUD: Final = Demo(
    "two clusters as cloud regions, VNFs with order, variables, a shared network and a volume, and one call for both",
    _job,
)
