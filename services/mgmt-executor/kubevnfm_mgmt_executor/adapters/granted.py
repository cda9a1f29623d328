"""The addresses that a package has chosen, and to which its scripts may connect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
from kubevnfm_clients.vnf_addresses import is_loopback
from kubevnfm_clients.vnf_networks import VnfAddressRefused, VnfNetworks

from kubevnfm_mgmt_executor.domain.scripts import Granted

log = structlog.get_logger()

_ANY_PORT: Final = 0


class GrantedAddresses:
    """`domain.scripts.Grants`."""

    def __init__(self, networks: VnfNetworks, *, ssh_port: int) -> None:
        """``ssh_port``: the only port that a script reaches of a loopback address of its machines."""
        self._networks, self._ssh_port = networks, ssh_port

    async def granted(self, addresses: Sequence[str], port: int | None = None) -> Granted:
        rules = await self._networks.rules()
        pairs: list[tuple[str, int]] = []
        refused: list[str] = []
        for address in addresses:
            at = self._ssh_port if port is None and is_loopback(address) else port
            refusal = rules.refusal(address, at)
            if refusal:
                log.warning("address_not_granted", address=address, reason=refusal)
                refused.append(refusal)
            else:
                pairs.append((address, at or _ANY_PORT))
        return Granted(tuple(pairs), tuple(refused))

    async def refusal_of_url(self, url: str) -> str:
        try:
            await self._networks.check_url(url)
        except VnfAddressRefused as error:
            return str(error)
        return ""
