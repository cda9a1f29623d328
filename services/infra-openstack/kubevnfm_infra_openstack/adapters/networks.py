"""NeutronNetworks: networks of a tenant with their subnets and the addresses in use (Networking API v2)."""

from __future__ import annotations

from kubevnfm_infra_openstack.adapters.tenants import Tenant, reads
from kubevnfm_infra_openstack.adapters.together import together
from kubevnfm_infra_openstack.domain.asked_ports import NetworkView, SubnetView


class NeutronNetworks:
    """The networks that one tenant sees."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    @reads("Neutron")
    async def find(self, name_or_id: str) -> NetworkView | None:
        network_id = await self.id_of(name_or_id)
        if network_id is None:
            return None
        subnets, ports = await together(
            self._tenant.call("network", "GET", path, query={"network_id": network_id})
            for path in ("/subnets", "/ports")
        )
        return NetworkView(
            network_id,
            [
                SubnetView(one["id"], one["cidr"], one.get("gateway_ip"), one.get("name") or "")
                for one in subnets.json()["subnets"]
                if one["network_id"] == network_id
            ],
            frozenset(
                ip["ip_address"]
                for one in ports.json()["ports"]
                if one["network_id"] == network_id
                for ip in one.get("fixed_ips") or ()
            ),
        )

    @reads("Neutron")
    async def id_of(self, name_or_id: str) -> str | None:
        return await self._id_of("networks", name_or_id)

    @reads("Neutron")
    async def subnet_id_of(self, name_or_id: str) -> str | None:
        return await self._id_of("subnets", name_or_id)

    @reads("Neutron")
    async def network_of_port(self, port_id: str) -> str | None:
        answer = await self._tenant.call("network", "GET", "/ports", query={"id": port_id})
        found = [one["network_id"] for one in answer.json()["ports"] if one["id"] == port_id]
        return str(found[0]) if found else None

    async def _id_of(self, kind: str, name_or_id: str) -> str | None:
        # By id first, as Heat does.
        for key in ("id", "name"):
            answer = await self._tenant.call("network", "GET", f"/{kind}", query={key: name_or_id})
            found = [one["id"] for one in answer.json()[kind] if one[key] == name_or_id]
            if found:
                return str(found[0])
        return None
