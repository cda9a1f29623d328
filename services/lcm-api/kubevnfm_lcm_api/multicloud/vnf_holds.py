"""The interfaces of a VNF on virtual links, and its persistent volumes, as they are shown and asked for."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_clients.multicloud.networks import NetworkRequest
from kubevnfm_clients.multicloud.volumes import VolumeMountRequest
from kubevnfm_events.objects import ClaimedVolume, NetworkAttachment

from kubevnfm_lcm_api.multicloud.vnf_types import VnfNetwork, VnfVolume


def shown_networks(networks: Sequence[NetworkAttachment]) -> tuple[VnfNetwork, ...]:
    """Return the interfaces in the form of a request."""
    return tuple(
        VnfNetwork(
            vdu_id=each.vdu_id,
            virtual_link_id=each.virtual_link_id,
            interface=each.interface,
            ip_address=each.ip_address,
            mac_address=each.mac_address,
            default_gateway=each.default_gateway,
            binding=each.binding if each.plugin is None else {"plugin": each.plugin},
        )
        for each in networks
    )


def asked_networks(networks: Sequence[NetworkAttachment]) -> tuple[NetworkRequest, ...]:
    """Return the interfaces as a request asks for them."""
    return tuple(NetworkRequest(**vars(each)) for each in shown_networks(networks))


def asked_volumes(volumes: Sequence[ClaimedVolume]) -> tuple[VolumeMountRequest, ...]:
    """Return the volumes as a request asks for them."""
    return tuple(VolumeMountRequest(**vars(each)) for each in shown_volumes(volumes))


def shown_volumes(volumes: Sequence[ClaimedVolume]) -> tuple[VnfVolume, ...]:
    """Return the volumes in the form of a request."""
    return tuple(
        VnfVolume(persistent_volume_id=each.persistent_volume_id, claim_name=each.claim_name) for each in volumes
    )
