"""``kuryr_param``: the networks of a cluster whose pods and Services are Neutron ports and load balancers (sequences.md 2.10).

The names follow those of kuryr.conf. An entity of the network is named by its UUID, or by its resource in the Base HOT.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, Literal
from uuid import UUID

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import Secret

from kubevnfm_cluster.forms import Form, Part, one_of, parsed, secret, text

KURYR: Final = "kuryr_param"
CONTROLLER_IMAGE: Final = "docker.io/kuryr/controller:latest"
CNI_IMAGE: Final = "docker.io/kuryr/cni:latest"
_IMAGE: Final = r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,511}"
_LINE: Final = r"[^\x00-\x1f\x7f]{1,1024}"
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}"
_INTERFACE: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}"
"""Linux: IFNAMSIZ is 16, with the zero at the end."""


def _names(value: object) -> object:
    # A tuple comes from a model that was dumped, a list from JSON.
    if not isinstance(value, list | tuple) or not value:
        raise ValueError
    if not all(isinstance(one, str) and re.fullmatch(_NAME, one) for one in value):
        raise ValueError
    return value


_NAMES: Final = Form("an array of at least one UUID or name of a resource of the Base HOT", _names)
Entity = Annotated[str, text("a UUID or the name of a resource of the Base HOT", _NAME)]
Kind = Literal["subnet", "security_group", "router", "network", "load_balancer"]


class NeutronAuth(Part):
    """How Kuryr logs in to Keystone."""

    auth_url: Annotated[str, text("a URL http(s)://...", r"https?://[^\s\"\\']{1,2000}")]
    username: Annotated[str, text("one line of text", _LINE)]
    password: Annotated[Secret, secret("one line of text", _LINE)]
    user_domain_name: Annotated[str, text("one line of text", _LINE)] = "Default"
    project_domain_name: Annotated[str, text("one line of text", _LINE)] = "Default"


class KuryrParameters(Part):
    """The network entities of a cluster with Kuryr-Kubernetes."""

    pod_security_group_ids: Annotated[tuple[str, ...], _NAMES]
    pod_subnet_ids: Annotated[tuple[str, ...], _NAMES]
    """The first one is the default."""
    # Keystone writes it without dashes.
    project_id: Annotated[str, parsed("a UUID", lambda value: UUID(value).hex)] | None = None
    """None: the project of the OpenStack VIM."""
    service_subnet_id: Entity
    lbaas_id: Entity
    """The load balancer of the Kubernetes API."""
    neutron_auth: NeutronAuth | None = None
    """None: an application credential that is made from the VIM's access data."""
    ovs_bridge: Annotated[str, text("the name of a bridge", _INTERFACE)] = "br-int"
    octavia_mode: Annotated[Literal["L2", "L3"], one_of("L2", "L3")] = "L3"
    pod_vif_driver: Annotated[
        Literal["nested-vlan", "nested-macvlan", "neutron-vif"], one_of("nested-vlan", "nested-macvlan", "neutron-vif")
    ] = "nested-vlan"
    worker_nodes_subnet_id: Entity | None = None
    """Needed by the nested drivers."""
    link_iface: Annotated[str, text("the name of a network interface", _INTERFACE)] = "eth0"
    external_svc_net_id: Entity | None = None
    external_svc_subnet_id: Entity | None = None
    router_id: Entity | None = None
    x_controller_image: Annotated[str, text("the name of a container image", _IMAGE)] = CONTROLLER_IMAGE
    x_cni_image: Annotated[str, text("the name of a container image", _IMAGE)] = CNI_IMAGE

    @property
    def is_nested(self) -> bool:
        """Whether the nodes are machines of the cloud, whose pods share their machine's port."""
        return self.pod_vif_driver != "neutron-vif"

    @property
    def has_trunks(self) -> bool:
        """Whether the nodes' ports must be trunks."""
        return self.pod_vif_driver == "nested-vlan"

    def entities(self) -> Iterator[tuple[str, Kind, str]]:
        """Yield attribute (``pod_subnet_ids/0``), kind and the given name of each entity."""
        for index, name in enumerate(self.pod_security_group_ids):
            yield f"pod_security_group_ids/{index}", "security_group", name
        for index, name in enumerate(self.pod_subnet_ids):
            yield f"pod_subnet_ids/{index}", "subnet", name
        single: tuple[tuple[str, Kind, str | None], ...] = (
            ("service_subnet_id", "subnet", self.service_subnet_id),
            ("lbaas_id", "load_balancer", self.lbaas_id),
            ("worker_nodes_subnet_id", "subnet", self.worker_nodes_subnet_id),
            ("external_svc_net_id", "network", self.external_svc_net_id),
            ("external_svc_subnet_id", "subnet", self.external_svc_subnet_id),
            ("router_id", "router", self.router_id),
        )
        for attribute, kind, name_or_none in single:
            if name_or_none is not None:
                yield attribute, kind, name_or_none


def is_uuid(name: str) -> bool:
    """Return whether an entity is named by its id."""
    try:
        UUID(name)
    except ValueError:
        return False
    return True


def check_kuryr(kuryr: KuryrParameters, *, path: str) -> None:
    """Refuse values that contradict each other. Raises Unprocessable naming the field below ``path``."""
    if kuryr.is_nested and kuryr.worker_nodes_subnet_id is None:
        raise Unprocessable(
            f"{path}/worker_nodes_subnet_id", f"missing: pod_vif_driver {kuryr.pod_vif_driver} needs the nodes' subnet"
        )
    if kuryr.external_svc_subnet_id is not None and kuryr.external_svc_net_id is None:
        raise Unprocessable(f"{path}/external_svc_net_id", "missing: the network of external_svc_subnet_id expected")
    for attribute in ("pod_security_group_ids", "pod_subnet_ids"):
        given = getattr(kuryr, attribute)
        if len(set(given)) < len(given):
            raise Unprocessable(f"{path}/{attribute}", "an entity is listed twice")
