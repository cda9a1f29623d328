"""Clusters with Kuryr-Kubernetes: which VNFs they are, and what the request for one must say (sequences.md 1.8, 2.10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_cluster.kuryr import KURYR, Kind, is_uuid
from kubevnfm_cluster.parameters import ROOT, ClusterParameters
from kubevnfm_events.mgmt import KURYR_DRIVER
from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_lcm_api.lifecycle.clusters.places import SUBNET, Places, connection_point
from kubevnfm_lcm_api.lifecycle.machines.drivers import has_kuryr

_FIELD: Final = f"{ROOT}/{KURYR}"
_TYPES: Final[Mapping[Kind, str]] = {
    "subnet": SUBNET,
    "security_group": "OS::Neutron::SecurityGroup",
    "router": "OS::Neutron::Router",
    "network": "OS::Neutron::Net",
    "load_balancer": "OS::Octavia::LoadBalancer",
}


def driver_of(phases: Mapping[str, str], phase: str) -> str | None:
    """Return the driver of a phase; None if it has none. All phases of a cluster with Kuryr are its own driver's."""
    driver = phases.get(phase)
    return KURYR_DRIVER if driver is not None and has_kuryr(phases) else driver


def pod_and_service_subnets(cluster: ClusterParameters) -> frozenset[str]:
    """Return the subnets of the template that hold the cluster's own networks, so that these are no foreign ones."""
    kuryr = cluster.kuryr_param
    return frozenset((*kuryr.pod_subnet_ids, kuryr.service_subnet_id)) if kuryr is not None else frozenset()


def check_kuryr(cluster: ClusterParameters, places: Places, *, is_driven: bool) -> None:
    """Check the parameters of Kuryr against driver and templates. ``is_driven``: whether the VNFD names Kuryr's driver.

    Raises: InvalidInput, Unprocessable naming the field.
    """
    kuryr = cluster.kuryr_param
    if kuryr is None:
        if is_driven:
            raise InvalidInput(_FIELD, f"missing: an object expected, as the VNFD names driver {KURYR_DRIVER}")
        return
    if not is_driven:
        raise Unprocessable(_FIELD, f"given, but the VNFD does not name driver {KURYR_DRIVER}")
    if places.hot is None:
        # SEQ-014
        raise Unprocessable(
            _FIELD, "the package has no Base HOT: TOSCA has neither the router nor the load balancer that Kuryr needs"
        )
    for attribute, kind, name in kuryr.entities():
        if not is_uuid(name):
            kinds = (_TYPES[kind],)
            connection_point(f"{_FIELD}/{attribute}", name, places.top, where="the top template", kinds=kinds)
