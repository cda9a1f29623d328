"""The handlers for the networks of clusters with Kuryr-Kubernetes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import structlog
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events.kuryr import (
    AwaitTrunks,
    KuryrLogin,
    KuryrNetwork,
    KuryrPrepared,
    KuryrRemoved,
    PrepareKuryr,
    RemoveKuryr,
    TrunksReady,
)
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_worker.outcome import Done, NotYet, Outcome, StepContext, nothing_made

from kubevnfm_infra_openstack.domain.errors import StackMissing
from kubevnfm_infra_openstack.domain.kuryr import (
    PATH,
    KuryrPort,
    check_balancer,
    check_routers,
    check_service_subnet,
    resolved,
    tag_of,
)
from kubevnfm_infra_openstack.domain.ports import POLL_PAUSES_S, Clouds

log = structlog.get_logger()
_AGAIN_S: Final = 1.0


@dataclass(frozen=True)
class KuryrHandlers:
    """Prepares the network of a cluster for Kuryr, and removes what Kuryr has made in it."""

    clouds: Clouds
    vims: VimDirectory

    async def prepare_kuryr(self, command: PrepareKuryr, context: StepContext) -> Outcome:
        """Find and check the network entities; wait for the load balancer and the trunks."""
        kuryr = command.kuryr
        with nothing_made():
            cloud = self.clouds.cloud(await self.vims.connection(command.vim))
            stack = await cloud.stacks.find(command.stack_name, tag=command.tag)
            if stack is None:
                raise StackMissing(command.stack_name)
            ids = resolved(kuryr, await cloud.stacks.resources(stack), stack.id)
            for attribute, kind, name in kuryr.entities():
                if not await cloud.kuryr.exists(kind, ids[attribute]):
                    what = "external network" if kind == "network" else kind.replace("_", " ")
                    raise Unprocessable(f"{PATH}/{attribute}", f"the project has no {what} {name}")
            services = await cloud.kuryr.subnet(ids["service_subnet_id"])
            check_service_subnet(services, command.service_cidr)
            check_routers(kuryr, ids, await cloud.kuryr.subnet(ids["pod_subnet_ids/0"]), services)
            balancer = await cloud.kuryr.load_balancer(ids["lbaas_id"])
            check_balancer(balancer, service_subnet_id=ids["service_subnet_id"], service_cidr=command.service_cidr)
            is_ready = balancer.status == "ACTIVE"
            if kuryr.has_trunks:
                is_ready = await self._trunks_are_ready(cloud.kuryr, command.servers) and is_ready
            if not is_ready:
                return NotYet(_AGAIN_S)
            project_id = await cloud.kuryr.project_id()
        network = KuryrNetwork(
            project_id=kuryr.project_id or project_id,
            pod_subnets=tuple(ids[f"pod_subnet_ids/{index}"] for index in range(len(kuryr.pod_subnet_ids))),
            pod_security_groups=tuple(
                ids[f"pod_security_group_ids/{index}"] for index in range(len(kuryr.pod_security_group_ids))
            ),
            service_subnet=ids["service_subnet_id"],
            worker_nodes_subnet=ids.get("worker_nodes_subnet_id"),
            external_svc_net=ids.get("external_svc_net_id"),
            external_svc_subnet=ids.get("external_svc_subnet_id"),
            api_address=balancer.address,
            tag=tag_of(command.vnf_instance_id),
            login=await self._login(command, cloud.kuryr),
        )
        log.info("kuryr_prepared", pod_subnets=len(network.pod_subnets), nodes=len(command.servers))
        return Done(KuryrPrepared(network=network))

    async def await_trunks(self, command: AwaitTrunks, context: StepContext) -> Outcome:
        """Wait until the trunks of all the servers are ACTIVE, which they become once their machines run."""
        with nothing_made():
            cloud = self.clouds.cloud(await self.vims.connection(command.vim))
            for pause_s in POLL_PAUSES_S:
                await asyncio.sleep(pause_s)
                if await self._trunks_are_ready(cloud.kuryr, command.servers):
                    return Done(TrunksReady())
        return NotYet(_AGAIN_S)

    async def _trunks_are_ready(self, cloud: KuryrPort, servers: tuple[str, ...]) -> bool:
        statuses = await cloud.trunks(servers)
        without = [one for one in servers if one not in statuses]
        if without:
            raise Unprocessable(f"{PATH}/pod_vif_driver", f"nested-vlan: server {without[0]} has no port with a trunk")
        return all(statuses[one] == "ACTIVE" for one in servers)

    async def _login(self, command: PrepareKuryr, cloud: KuryrPort) -> KuryrLogin:
        given = command.kuryr.neutron_auth
        if given is None:
            return await cloud.login(tag_of(command.vnf_instance_id))
        return KuryrLogin(
            auth_url=given.auth_url,
            username=given.username,
            password=given.password,
            user_domain_name=given.user_domain_name,
            project_domain_name=given.project_domain_name,
        )

    async def remove_kuryr(self, command: RemoveKuryr, context: StepContext) -> Outcome:
        """Delete what carries the instance's tag, again and again until a look finds nothing: Kuryr may still run."""
        cloud = self.clouds.cloud(await self.vims.connection(command.vim))
        tag = tag_of(command.vnf_instance_id)
        balancers = ports = 0
        for pause_s in POLL_PAUSES_S:
            await asyncio.sleep(pause_s)
            removed = await cloud.kuryr.remove_tagged(tag)
            if removed.is_complete:
                # Last: Kuryr itself needs it as long as it deletes.
                await cloud.kuryr.delete_login(tag)
                log.info("kuryr_removed", load_balancers=balancers, ports=ports)
                return Done(KuryrRemoved(load_balancers=balancers, ports=ports))
            balancers, ports = max(balancers, removed.load_balancers), max(ports, removed.ports)
        return NotYet(_AGAIN_S)
