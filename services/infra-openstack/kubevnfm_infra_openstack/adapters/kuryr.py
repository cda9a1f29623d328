"""KuryrCloud: Neutron (v2.0), Octavia (v2.0) and Keystone's application credentials (v3), as far as Kuryr needs them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from kubevnfm_cluster.kuryr import Kind
from kubevnfm_events.kuryr import KuryrLogin
from kubevnfm_secrets import Secret

from kubevnfm_infra_openstack.adapters.tenants import Tenant, reads
from kubevnfm_infra_openstack.domain.errors import ServiceMissing
from kubevnfm_infra_openstack.domain.kuryr import LoadBalancer, Removed, Subnet

_PATHS: Final[Mapping[Kind, tuple[str, str, str]]] = {
    "subnet": ("network", "/subnets", "subnet"),
    "security_group": ("network", "/security-groups", "security_group"),
    "router": ("network", "/routers", "router"),
    "network": ("network", "/networks", "network"),
    "load_balancer": ("load_balancer", "/lbaas/loadbalancers", "loadbalancer"),
}
_DESCRIPTION: Final = "Kuryr of a cluster of kubevnfm"
_MISSING: Final = frozenset({404})
_LEFT: Final = frozenset({404, 409})
"""Gone, or in use as long as something else is being deleted: the next look decides."""


class KuryrCloud:
    """The network of one tenant."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self._neutron, self._octavia = partial(tenant.call, "network"), partial(tenant.call, "load_balancer")

    async def project_id(self) -> str:
        return await self._tenant.project_id()

    @reads("Neutron")
    async def exists(self, kind: Kind, id: str) -> bool:
        service, path, one = _PATHS[kind]
        answer = await self._tenant.call(service, "GET", f"{path}/{id}", fine=_MISSING)
        return answer.ok and (kind != "network" or answer.json()[one]["router:external"] is True)

    @reads("Neutron")
    async def subnet(self, id: str) -> Subnet:
        found, ports = await asyncio.gather(
            self._neutron("GET", f"/subnets/{id}"),
            self._neutron("GET", "/ports", query={"fixed_ips": f"subnet_id={id}"}),
        )
        shown = found.json()["subnet"]
        return Subnet(
            cidr=shown["cidr"],
            pools=tuple((one["start"], one["end"]) for one in shown["allocation_pools"]),
            # Neutron names the owner after the router's kind: router_interface, ha_router_replicated_interface ...
            routers=frozenset(one["device_id"] for one in ports.json()["ports"] if "router" in one["device_owner"]),
        )

    @reads("Octavia")
    async def load_balancer(self, id: str) -> LoadBalancer:
        shown = (await self._octavia("GET", f"/lbaas/loadbalancers/{id}")).json()["loadbalancer"]
        listeners = await asyncio.gather(
            *(self._octavia("GET", f"/lbaas/listeners/{one['id']}") for one in shown["listeners"])
        )
        return LoadBalancer(
            status=shown["provisioning_status"],
            address=shown["vip_address"],
            subnet_id=shown["vip_subnet_id"],
            ports=frozenset(int(one.json()["listener"]["protocol_port"]) for one in listeners),
        )

    @reads("Neutron")
    async def trunks(self, servers: Sequence[str]) -> Mapping[str, str]:
        trunks = (await self._neutron("GET", "/trunks")).json()["trunks"]
        status_by_port = {one["port_id"]: one["status"] for one in trunks}
        answers = await asyncio.gather(*(self._neutron("GET", "/ports", query={"device_id": one}) for one in servers))
        found: dict[str, str] = {}
        for server, answer in zip(servers, answers, strict=True):
            for port in answer.json()["ports"]:
                if port["id"] in status_by_port:
                    found[server] = status_by_port[port["id"]]
        return found

    @reads("Keystone")
    async def login(self, name: str) -> KuryrLogin:
        access = self._tenant.access
        place = {"auth_url": access.auth_url, "region": access.region, "ca_pem": access.certificates}
        if access.credential_secret is not None and access.credential_id is not None:
            # Keystone lets an application credential make no other one unless it is unrestricted.
            return KuryrLogin(
                **place, credential_id=access.credential_id, credential_secret=Secret(access.credential_secret)
            )
        made = await self._tenant.credentials(lambda mine: mine.replace(name, description=_DESCRIPTION))
        return KuryrLogin(**place, credential_id=made.id, credential_secret=Secret(made.secret))

    @reads("Keystone")
    async def delete_login(self, name: str) -> None:
        await self._tenant.credentials(lambda mine: mine.delete(name))

    async def remove_tagged(self, tag: str) -> Removed:
        balancers = await self._remove_balancers(tag)
        return Removed(load_balancers=balancers, ports=await self._remove_ports(tag))

    @reads("Octavia")
    async def _remove_balancers(self, tag: str) -> int:
        try:
            answer = await self._octavia("GET", "/lbaas/loadbalancers", query={"tags": tag})
        except ServiceMissing:
            return 0  # a cloud without Octavia, so a cluster that was never built
        balancers = [one for one in answer.json()["loadbalancers"] if tag in one["tags"]]
        for one in balancers:
            query = {"port_id": one["vip_port_id"]}
            for floating in (await self._neutron("GET", "/floatingips", query=query)).json()["floatingips"]:
                await self._neutron("DELETE", f"/floatingips/{floating['id']}", fine=_MISSING)
            if not str(one["provisioning_status"]).startswith("PENDING"):
                path = f"/lbaas/loadbalancers/{one['id']}"
                await self._octavia("DELETE", path, query={"cascade": "true"}, fine=_LEFT)
        return len(balancers)

    @reads("Neutron")
    async def _remove_ports(self, tag: str) -> int:
        ports = {one["id"] for one in await self._tagged("/ports", "ports", tag)}
        if ports:
            for trunk in (await self._neutron("GET", "/trunks")).json()["trunks"]:
                mine = [one["port_id"] for one in trunk["sub_ports"] if one["port_id"] in ports]
                if mine:
                    body = {"sub_ports": [{"port_id": one} for one in mine]}
                    path = f"/trunks/{trunk['id']}/remove_subports"
                    await self._neutron("PUT", path, body=body, fine=_LEFT)
            for port_id in ports:
                await self._neutron("DELETE", f"/ports/{port_id}", fine=_LEFT)
        for group in await self._tagged("/security-groups", "security_groups", tag):
            await self._neutron("DELETE", f"/security-groups/{group['id']}", fine=_LEFT)
        return len(ports)

    async def _tagged(self, path: str, key: str, tag: str) -> list[Any]:
        found = (await self._neutron("GET", path, query={"tags": tag})).json()[key]
        # Looked at once more: a proxy that drops the filter must not make us delete what others own.
        return [one for one in found if tag in one["tags"]]
