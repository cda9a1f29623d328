"""An OpenStack that runs already, in the role of the lab: the end-to-end tests compare kubevnfm's answers with it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import openstack
from openstack.connection import Connection

REAL_CLOUD: Final = os.environ.get("KUBEVNFM_E2E_CLOUD")
"""If set, the tests use this cloud in place of the lab: an entry of clouds.yaml."""


def connected(vim: Mapping[str, Any]) -> Connection:
    """Return openstacksdk's connection to the cloud that a registration of a VIM names."""
    project, login = vim["vim_project"], vim["auth_cred"]
    return openstack.connect(
        auth_url=vim["auth_url"],
        username=login["username"],
        password=login["password"],
        user_domain_name=login["user_domain_name"],
        project_name=project["name"],
        project_domain_name=project["project_domain_name"],
    )


class RealCloud:
    """A cloud with the methods of `lab_process.LabProcess` and `lab_process.LabControl` that the tests of machines call.

    ``name`` is an entry of the file clouds.yaml, which openstacksdk finds. The cloud must have what the samples name: the
    networks net0 and net1, the flavors m1.tiny, m1.micro (its disk as large as that of m1.tiny: tests change from one to the
    other and back) and m1.small, the images ubuntu and dummy; ubuntu/``$KUBEVNFM_E2E_MACHINE_PASSWORD`` (ubuntu) logs in
    to their machines. Its own password must differ from all other words, since tests search for it. Tests that inject
    faults have the mark ``faults`` and are skipped.
    """

    ssh_port = 22
    vnf_networks = "0.0.0.0/0"
    machine_password = os.environ.get("KUBEVNFM_E2E_MACHINE_PASSWORD", "ubuntu")

    def __init__(self, name: str) -> None:
        self._connection: Connection = openstack.connect(cloud=name)

    def vim(self, **changes: Any) -> dict[str, Any]:
        """Return the body that registers the cloud as a VIM."""
        auth = self._connection.config.get_auth_args()
        return {
            "name": "lab",
            "type": "openstack",
            "is_default": True,
            "auth_url": auth["auth_url"],
            "vim_project": {"name": auth["project_name"], "project_domain_name": auth["project_domain_name"]},
            "auth_cred": {
                "username": auth["username"],
                "password": auth["password"],
                "user_domain_name": auth["user_domain_name"],
                "cert_verify": "False",
            },
            **changes,
        }

    @property
    def vim_password(self) -> str:
        return str(self._connection.config.get_auth_args()["password"])

    async def inventory(self) -> dict[str, list[dict[str, Any]]]:
        """Return the stacks, their servers, volumes and networks, and the servers' ports.

        The name of each begins with the name of its stack, except that of a port.
        """
        return await asyncio.to_thread(self._inventory)

    async def names(self) -> set[str]:
        """Return the kind and name of everything that belongs to a stack of a VNF."""
        found = await self.inventory()
        return {f"{kind}/{thing['name']}" for kind in found for thing in found[kind] if kind != "ports"}

    @asynccontextmanager
    async def snapshots_are_written(self) -> AsyncIterator[None]:
        """Write the images of snapshots while the block runs: Nova's fake hypervisor leaves them queued."""

        async def write() -> None:
            while True:
                await asyncio.to_thread(self._write_queued)
                await asyncio.sleep(0.5)

        writing = asyncio.create_task(write())
        try:
            yield
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    def _write_queued(self) -> None:
        images = self._connection.image
        for image in images.get("/images", params={"status": "queued", "image_type": "snapshot"}).json()["images"]:
            path = f"/images/{image['id']}"
            formats = [
                {"op": "replace", "path": f"/{name}", "value": value}
                for name, value in (("disk_format", "raw"), ("container_format", "bare"))
            ]
            patch = "application/openstack-images-v2.1-json-patch"
            images.patch(path, json=formats, headers={"Content-Type": patch})
            images.put(f"{path}/file", data=bytes(4096), headers={"Content-Type": "application/octet-stream"})

    def _inventory(self) -> dict[str, list[dict[str, Any]]]:
        # Heat lists a deleted stack for a moment.
        stacks = [
            stack
            for stack in self._connection.orchestration.stacks()
            if stack.name.startswith("vnf-") and stack.status != "DELETE_COMPLETE"
        ]
        servers = {server.id: server for server in self._connection.compute.servers()}
        found: dict[str, list[dict[str, Any]]] = {"stacks": [{"id": stack.id, "name": stack.name} for stack in stacks]}
        for stack in stacks:
            for kind, resource_id in self._resources(stack):
                if kind == "OS::Nova::Server" and resource_id in servers:
                    found.setdefault("servers", []).append(self._server(stack.name, servers[resource_id]))
                    found.setdefault("ports", []).extend(self._ports(resource_id))
                elif kind == "OS::Cinder::Volume":
                    found.setdefault("volumes", []).append(self._volume(stack.name, resource_id))
                elif kind == "OS::Neutron::Net":
                    found.setdefault("networks", []).append({"id": resource_id, "name": f"{stack.name}/{resource_id}"})
        return found

    def _server(self, stack_name: str, server: Any) -> dict[str, Any]:
        addresses = sorted(address["addr"] for each in server.addresses.values() for address in each)
        name = f"{stack_name}/{server.name}"
        return {"id": server.id, "name": name, "status": server.status, "addresses": addresses}

    def _ports(self, server_id: str) -> Iterator[dict[str, Any]]:
        for port in self._connection.network.ports(device_id=server_id):
            addresses = [ip["ip_address"] for ip in port.fixed_ips]
            yield {
                "id": port.id,
                "name": port.name,
                "device_id": server_id,
                "mac": port.mac_address,
                "addresses": addresses,
            }

    def _volume(self, stack_name: str, volume_id: str) -> dict[str, Any]:
        attached = [one["server_id"] for one in self._connection.block_storage.get_volume(volume_id).attachments]
        return {"id": volume_id, "name": f"{stack_name}/{volume_id}", "servers": attached}

    def _resources(self, stack: Any) -> Iterator[tuple[str, str]]:
        """Yield type and id of the resources of a stack and of the stacks in it."""
        path = f"/stacks/{stack.name}/{stack.id}/resources"
        for resource in self._connection.orchestration.get(path, params={"nested_depth": 5}).json()["resources"]:
            yield resource["resource_type"], resource["physical_resource_id"]
