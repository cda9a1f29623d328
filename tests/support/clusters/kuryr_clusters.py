"""The sample of a cluster with Kuryr on the lab's machines, a CNF with a load balancer, and one who does Kuryr's part.

The lab runs no images, so no kuryr-controller either. `Kuryr` does for one Service what the controller does for all. It
knows nothing but what the cluster gives the controller: kuryr.conf, the login in the Secret, and the Kubernetes API.
"""

from __future__ import annotations

import asyncio
import base64
import configparser
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any, Final

import openstack
import yaml
from callers.user import PACKED, sample_body
from clouds.lab_process import LabProcess
from packages.own_packages import Files, zipped
from patience import until

from clusters.masters import kubectl

PORT: Final = 8080
"""Where the Service and its pods answer; no port that only root may open."""
_CNF: Final = "7f6b2b5c-9d11-4a63-8f0e-3b1c7d5e2a90"


def kuryr_request(lab: LabProcess, *, level: str = "smallest") -> dict[str, Any]:
    """Return the instantiate request; the ranges are beside those of the lab's networks, where this host can listen."""
    octets = str(ip_network(lab.endpoints["networks"]["net0"]).network_address).split(".")
    place = f"{octets[0]}.{octets[1]}"
    body = {**sample_body("kuryr", "instantiate"), "instantiationLevelId": level}
    parameters = body["additionalParams"]
    parameters["node_cidr"] = f"{place}.201.0/24"
    install = parameters["k8s_cluster_installation_param"]
    install["master_node"] |= {"cluster_cidr": f"{place}.202.0/24", "pod_cidr": f"{place}.204.0/22"}
    for role in ("master_node", "worker_node"):
        install[role]["password"] = lab.machine_password
    return body


def balanced_cnf(vnfd_id: str) -> bytes:
    """Return the sample ``cnf`` with a Service of type LoadBalancer."""
    with zipfile.ZipFile(PACKED / "cnf.zip") as sample:
        files: Files = {name: sample.read(name).replace(_CNF.encode(), vnfd_id.encode()) for name in sample.namelist()}
    files["TOSCA-Metadata/TOSCA.meta"] = files["TOSCA-Metadata/TOSCA.meta"].split(b"\n\n")[0] + b"\n"
    path = "Files/kubernetes/service.yaml"
    service = yaml.safe_load(files[path])
    service["spec"] |= {"type": "LoadBalancer", "ports": [{"name": "http", "port": PORT, "targetPort": PORT}]}
    files[path] = yaml.safe_dump(service).encode()
    return zipped(files)


@dataclass(frozen=True)
class Balanced:
    """A Service with its load balancer."""

    address: str
    """The virtual address: that of the Service."""
    pods: tuple[str, ...]
    """The addresses of the pods."""


class Kuryr:
    """Does the part of kuryr-controller, on a master that it reaches over SSH."""

    def __init__(self, lab: LabProcess, master: str) -> None:
        """``master``: the address of a master for SSH."""
        self._lab, self._master = lab, master

    async def balance(self, service: str, namespace: str = "default") -> Balanced:
        """Wait for a Service with pods; give it a load balancer and an address, and its pods ports on a trunk."""

        async def found() -> tuple[dict[str, Any], dict[str, Any]] | None:
            whole = await self._kubectl(f"get services,endpoints -n {namespace} -o json")
            named = {one["kind"]: one for one in json.loads(whole)["items"] if one["metadata"]["name"] == service}
            # The two kinds are listed one after the other: both may be made between the lists.
            made, endpoints = named.get("Service"), named.get("Endpoints")
            return (made, endpoints["subsets"][0]) if made and endpoints and endpoints.get("subsets") else None

        shown, subset = await until(found)
        conf = configparser.ConfigParser(interpolation=None)
        settings = json.loads(await self._kubectl("get configmap kuryr-config -n kube-system -o json"))
        login = json.loads(await self._kubectl("get secret kuryr-login -n kube-system -o json"))
        conf.read_string(settings["data"]["kuryr.conf"])
        conf.read_string(base64.b64decode(login["data"]["neutron.conf"]).decode())
        address = str(shown["spec"]["clusterIP"])
        pods = tuple(str(one["ip"]) for one in subset["addresses"])
        await asyncio.to_thread(_make, conf, f"{namespace}/{service}", address, pods)
        if shown["spec"]["type"] == "LoadBalancer":
            status = json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}})
            await self._kubectl(
                f"patch service {service} -n {namespace} --subresource status --type merge -p '{status}'"
            )
        return Balanced(address, pods)

    async def _kubectl(self, arguments: str) -> str:
        return await kubectl(self._lab, self._master, arguments)


def _make(conf: Mapping[str, Mapping[str, str]], service: str, address: str, pods: tuple[str, ...]) -> None:
    """Make the load balancer of a Service, and a port on a trunk for each of its pods; all carry the tag of kuryr.conf."""
    login, wanted = conf["neutron"], conf["neutron_defaults"]
    # oslo.config: $$ stands for one $.
    values = {name: value.replace("$$", "$") for name, value in login.items()}
    with openstack.connect(
        auth_url=values["auth_url"],
        auth_type=values["auth_type"],
        application_credential_id=values["application_credential_id"],
        application_credential_secret=values["application_credential_secret"],
        region_name=values.get("region_name"),
    ) as cloud:
        tag, trunk = wanted["resource_tags"], next(iter(cloud.network.trunks()))
        pod_subnet = cloud.network.get_subnet(wanted["pod_subnet"])
        for number, _ in enumerate(pods, 1):
            # At any address: the lab's pods have theirs from the cluster, as without Kuryr.
            port = cloud.network.create_port(
                network_id=pod_subnet.network_id,
                name=f"{service}-{number}",
                fixed_ips=[{"subnet_id": pod_subnet.id}],
                security_groups=wanted["pod_security_groups"].split(","),
            )
            cloud.network.set_tags(port, [tag])
            vlan = {"port_id": port.id, "segmentation_type": "vlan", "segmentation_id": number}
            cloud.network.add_trunk_subports(trunk, [vlan])
        balancer = cloud.load_balancer.create_load_balancer(
            name=service, vip_subnet_id=wanted["service_subnet"], vip_address=address, tags=[tag]
        )

        def ready() -> None:
            cloud.load_balancer.wait_for_load_balancer(balancer.id, interval=0)

        ready()
        named = {"name": f"{service}:TCP:{PORT}", "protocol": "TCP"}
        listener = cloud.load_balancer.create_listener(
            **named, load_balancer_id=balancer.id, protocol_port=PORT, tags=[tag]
        )
        ready()
        pool = cloud.load_balancer.create_pool(**named, listener_id=listener.id, lb_algorithm="ROUND_ROBIN", tags=[tag])
        ready()
        for pod in pods:
            cloud.load_balancer.create_member(pool, address=pod, protocol_port=PORT, subnet_id=pod_subnet.id)
            ready()
