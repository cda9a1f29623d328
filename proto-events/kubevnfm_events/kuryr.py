"""The networks of clusters with Kuryr-Kubernetes, in the cloud (infra-openstack)."""

from __future__ import annotations

from kubevnfm_cluster.kuryr import KuryrParameters
from kubevnfm_secrets import Secret

from kubevnfm_events.base import Command, Event, Facts
from kubevnfm_events.common import VimConnection


class KuryrLogin(Facts):
    """How Kuryr logs in to Keystone: by an application credential, or as a user."""

    auth_url: str
    region: str | None = None
    ca_pem: str = ""
    """The authorities to trust; empty: those of the system."""
    credential_id: str | None = None
    credential_secret: Secret | None = None
    username: str | None = None
    password: Secret | None = None
    user_domain_name: str | None = None
    project_domain_name: str | None = None


class KuryrNetwork(Facts):
    """The network entities of a cluster, by id, as kuryr.conf names them."""

    project_id: str
    pod_subnets: tuple[str, ...]
    pod_security_groups: tuple[str, ...]
    service_subnet: str
    worker_nodes_subnet: str | None = None
    external_svc_net: str | None = None
    external_svc_subnet: str | None = None
    api_address: str
    """The virtual address of the load balancer in front of the masters: the first address of Services."""
    tag: str
    """Carried by everything that Kuryr makes for this cluster."""
    login: KuryrLogin


class KuryrPrepared(Event, kind="infra.kuryr.prepared"):
    """The network entities exist and fit together, and the nodes' trunks are ready."""

    network: KuryrNetwork


class PrepareKuryr(Command, kind="infra.openstack.prepare_kuryr", service="infra-openstack", reply=KuryrPrepared):
    """Find and check the network entities of a cluster, and make Kuryr's application credential."""

    vnf_instance_id: str
    tag: str
    """Stack tag by which the stack is found: the instance id."""
    stack_name: str
    vim: VimConnection
    kuryr: KuryrParameters
    service_cidr: str
    """The network of Services: the lower half of the subnet of Services."""
    servers: tuple[str, ...] = ()
    """Nova ids of the nodes."""


class KuryrRemoved(Event, kind="infra.kuryr.removed"):
    """Nothing that Kuryr has made for the cluster is left."""

    load_balancers: int = 0
    ports: int = 0


class RemoveKuryr(Command, kind="infra.openstack.remove_kuryr", service="infra-openstack", reply=KuryrRemoved):
    """Delete the load balancers, floating IPs, ports and security groups that Kuryr has made, and its credential."""

    vnf_instance_id: str
    vim: VimConnection


class TrunksReady(Event, kind="infra.trunks.ready"):
    """The ports of the named servers are trunks that can take the ports of pods."""


class AwaitTrunks(Command, kind="infra.openstack.await_trunks", service="infra-openstack", reply=TrunksReady):
    """Wait until the trunks of machines that join a cluster with Kuryr are ACTIVE."""

    vnf_instance_id: str
    vim: VimConnection
    servers: tuple[str, ...]
    """Nova ids of the nodes that join."""
