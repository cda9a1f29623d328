"""``network_parameters``: the address that ONAP gives for an interface of a workload (multicloud.md MC-036)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_clients.multicloud.networks import NetworkRequest
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.multicloud.vnf_types import NetworkParameters

_PLACE: Final = "network_parameters/oam_ip_address"


def with_oam_address(networks: Sequence[NetworkRequest], given: NetworkParameters | None) -> tuple[NetworkRequest, ...]:
    """Return the interfaces, the one that is named with its address.

    Raises Unprocessable if no interface has the name, or if it has another address.
    """
    if given is None:
        return tuple(networks)
    wanted = given.oam_ip_address
    if all(each.vdu_id != wanted.workload_name for each in networks):
        raise Unprocessable(f"{_PLACE}/workload_name", "the vdu_id of an interface in networks expected")
    found = next(
        (each for each in networks if (each.vdu_id, each.interface) == (wanted.workload_name, wanted.connection_point)),
        None,
    )
    if found is None:
        reason = f"the name of an interface of {wanted.workload_name} expected, as networks has it"
        raise Unprocessable(f"{_PLACE}/connection_point", reason)
    if found.ip_address not in (None, wanted.ip_address):
        raise Unprocessable(f"{_PLACE}/ip_address", f"networks gives this interface the address {found.ip_address}")
    addressed = found.model_copy(update={"ip_address": wanted.ip_address})
    return tuple(addressed if each is found else each for each in networks)
