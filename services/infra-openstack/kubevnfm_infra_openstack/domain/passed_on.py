"""Finds what a request asks of ports and a package's user data leave out, before Heat makes or changes anything.

A template gives a port the MAC address, the address or the port of a request only if it has the value, or a parameter has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.connection_points import AskedPoint, AskedPort, canonical

_COMPOSED: Final = ("str_replace", "list_join", "str_split", "yaql", "repeat")
"""Heat's functions that make a text of others: what they lead to is compared when it is there."""
_IPV6: Final = re.compile(r"[0-9a-f]*:[0-9a-f:]*:[0-9a-f:.]*")


def check_passed_on(
    points: Mapping[str, AskedPoint], counts: Mapping[str, int], vnfd: Flavour, heat: Sequence[Any]
) -> None:
    """Raise Unprocessable if a port would not get what only one port can have, because nothing that Heat reads has it.

    ``counts``: machines by VDU, without those that are not known; ``heat``: templates and parameters, as text or parsed.
    """
    if not any(port.is_for_one for point in points.values() for port in point.ports):
        return
    text = "\n".join(one if isinstance(one, str) else json.dumps(one, default=str) for one in heat).lower()
    if any(name in text for name in _COMPOSED):
        return
    addresses = {canonical(found) for found in _IPV6.findall(text)}
    for cpd_id, point in points.items():
        missed = [value for port in point.ports if (value := next(_missing(port, text, addresses), None)) is not None]
        # Entries for machines that a later scaling makes are for no port yet.
        cp = vnfd.cps.get(cpd_id)
        waiting = len(point.ports) - max(1, counts.get(cp.vdu_id or "", 1) if cp is not None else 1)
        if len(missed) > max(0, waiting):
            reason = "neither the Heat template nor its parameters have it, as the user data of the package make them"
            raise Unprocessable(f"extVirtualLinks/{cpd_id}", f"{missed[0]}: {reason}")


def _missing(port: AskedPort, text: str, addresses: Collection[str]) -> Iterator[str]:
    if port.link_port_id is not None:
        if port.port_id is not None and port.port_id.lower() not in text:
            yield f"port {port.port_id} of linkPortId"
        return
    if port.mac is not None and port.mac not in text:
        yield f"macAddress {port.mac}"
    for address in port.fixed:
        if (
            address not in addresses
            if ":" in address
            else not re.search(rf"(?<![\d.]){re.escape(address)}(?![\d.])", text)
        ):
            yield f"fixedAddresses {address}"
