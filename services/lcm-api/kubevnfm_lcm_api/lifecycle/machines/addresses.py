"""The addresses of machines by the names of their connection points. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubevnfm_cluster.parameters import CLUSTER
from kubevnfm_events.stacks import PortFacts, ServerFacts, StackResources
from kubevnfm_kit.errors import VnfmError

FLOATING_IP: Final = "OS::Neutron::FloatingIP"


class NodeNotFound(VnfmError, code="node-not-found", title="Machine not found in the stack"):
    """A group, VDU or connection point that the request names is not in the stack, or has no address."""

    def __init__(self, field: str, reason: str, *, within: str = f"{CLUSTER}.") -> None:
        """``within``: the beginning of the field's path."""
        super().__init__(f"{within}{field}: {reason}")
        self.field, self.reason = field, reason


def connection_address(server: ServerFacts, resources: StackResources, name: str, *, field: str) -> str:
    """Return the address of a server's port or floating IP of this name. Raises NodeNotFound for ``field``.

    In a template with a numbered resource for each machine (``VDU1-1``, ``VDU1_CP1-1``) the name is that of the VNFD
    (``VDU1_CP1``): a request has one name for all machines of a VDU.
    """
    # The number first: the top stack holds the ports of the other machines too.
    numbered = name + server.name.removeprefix(server.vdu_id) if server.name.startswith(f"{server.vdu_id}-") else name
    if any(port.name == numbered for port in server.ports):
        name = numbered
    try:
        return _address(_beside(server, resources, name, field=field), field=field, of=_label(server))
    except NodeNotFound as error:
        raise NodeNotFound(error.field, error.reason, within="") from error


def _beside(server: ServerFacts, resources: StackResources, name: str, *, field: str) -> PortFacts:
    """Return a port or floating IP of the server's own stack; of the top stack only if the server is in that."""
    # Members of a group have ports of the same names, so a port of another member must not be found.
    here = server.ports if server.group is not None else (*server.ports, *resources.ports)
    return _named(here, name, field=field, where=f"beside {_label(server)}")


def _named(ports: Iterable[PortFacts], name: str, *, field: str, where: str) -> PortFacts:
    known = list(ports)
    for port in known:
        if port.name == name:
            return port
    names = sorted({port.name for port in known})
    raise NodeNotFound(field, f"there is no connection point {name} {where}; there are: {_list(names)}")


def _address(port: PortFacts, *, field: str, of: str) -> str:
    if port.resource_type == FLOATING_IP:
        if port.floating_address is None:
            raise NodeNotFound(field, f"floating IP {port.name} of {of} has no address")
        return port.floating_address
    if not port.addresses:
        raise NodeNotFound(field, f"port {port.name} of {of} has no address")
    return port.addresses[0]


def _label(server: ServerFacts) -> str:
    """Return the name by which a person knows the machine."""
    return server.server_name or (f"{server.group}/{server.member}/{server.name}" if server.group else server.name)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
