"""How the machines of a role are chosen, and the rule that no two of them share an address.

A request never carries addresses. It names a scaling aspect or a VDU, and the same choice is made twice: from VNFD and
templates when the request is checked, and from the stack's servers once they exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal, Protocol, Self

from kubevnfm_kit.errors import Unprocessable, VnfmError

Role = Literal["master", "worker"]


class Server(Protocol):
    """A server of the stack, as far as a choice depends on it."""

    @property
    def group(self) -> str | None:
        """The group of nested stacks that it is a member of."""
        ...

    @property
    def vdu_id(self) -> str: ...

    @property
    def name(self) -> str:
        """Its resource name in the template."""
        ...


@dataclass(frozen=True)
class NodeChoice:
    """Which servers belong to a role. The first rule that applies: scaling aspect, VDU, name (sequences.md 3.1)."""

    by: Literal["aspect_id", "vdu_id", "name"]
    value: str
    """The aspect, the VDU, or the beginning of the name."""

    @classmethod
    def from_attributes(cls, role: Role, *, aspect_id: str | None, vdu_id: str | None) -> Self:
        """Return the choice that a group's attributes make; without attributes, names begin with their role (TOSCA)."""
        if aspect_id is not None:
            return cls("aspect_id", aspect_id)
        if vdu_id is not None:
            return cls("vdu_id", vdu_id)
        return cls("name", role)

    def includes(self, server: Server) -> bool:
        """Return whether the server is chosen."""
        if self.by == "aspect_id":
            return server.group == self.value
        if self.by == "vdu_id":
            return server.vdu_id == self.value
        return server.name.startswith(self.value)


class SharedAddress(VnfmError):
    """Two nodes would be reached at one address: two names mean the same machine, or a network has it twice."""

    code = "shared-address"
    title = "Two machines share an address"
    status = 422

    def __init__(self, address: str, nodes: tuple[str, ...]) -> None:
        super().__init__(f"{address} is the address of {' and '.join(nodes)}")
        self.address, self.nodes = address, nodes


def refuse_shared_addresses(address_by_node: Mapping[str, str]) -> None:
    """Refuse addresses that two nodes have, in any spelling. Keys name the nodes in errors.

    Raises: SharedAddress; Unprocessable when a text is not an IP address.
    """
    nodes: dict[str, list[str]] = {}
    for node, text in address_by_node.items():
        try:
            nodes.setdefault(str(ip_address(text)), []).append(node)
        except ValueError as error:
            raise Unprocessable(node, "an IP address expected") from error
    for address, users in nodes.items():
        if len(users) > 1:
            raise SharedAddress(address, tuple(users))
