"""Private container registries that the nodes of a cluster pull from (sequences.md 2.6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated, ClassVar, Final, Literal

from cryptography.x509 import load_pem_x509_certificates
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import Secret

from kubevnfm_cluster.forms import HOST, PACKAGE_PATH, PASSWORD, Form, Part, parsed, secret, text

REGISTRIES: Final = "private_registry_connection_info"
_CONNECTION: Final = {"type": ["string", "integer"], "enum": ["0", "1", 0, 1]}
_SERVER: Final = rf"{HOST}(:\d{{1,5}})?"
REGISTRY_USER: Final = r"[^\r\n\x00:]{1,255}"
"""RFC 7617, 2: a user of HTTP Basic has no colon."""


def _connection_type(value: object) -> str:
    # Both the text and the number are in use. In Python, True is an int.
    if isinstance(value, bool) or str(value) not in {"0", "1"}:
        raise ValueError
    return str(value)


def _server(value: str) -> str:
    if not re.fullmatch(_SERVER, value):
        raise ValueError
    _, _, port = value.partition(":")
    if port and not 1 <= int(port) <= 65_535:
        raise ValueError
    return value


def _hosts_entry(value: str) -> str:
    address, _, name = value.partition(" ")
    ip_address(address)
    if not re.fullmatch(HOST, name):
        raise ValueError
    return value


class Registry(Part):
    """A private container registry."""

    pairs: ClassVar = (("username", "password"),)

    connection_type: Annotated[Literal["0", "1"], Form("0 (HTTP) or 1 (HTTPS)", _connection_type, _CONNECTION)]
    server: Annotated[str, parsed("host or host:port", _server)]
    """As images name it."""
    username: Annotated[str, text("one line of text without a colon", REGISTRY_USER)] | None = None
    password: Annotated[Secret, secret("one line of text", PASSWORD)] | None = None
    certificate_path: Annotated[str, PACKAGE_PATH] | None = None
    """The CA of its certificate, in the package."""
    hosts_string: Annotated[str, parsed("one line '<ip> <fqdn>'", _hosts_entry)] | None = None

    @property
    def url(self) -> str:
        """Where it answers, without a path."""
        return f"{'https' if self.connection_type == '1' else 'http'}://{self.server}"


def check_registries(registries: Sequence[Registry], *, path: str) -> None:
    """Refuse registries that contradict each other. Raises Unprocessable naming the field below ``path``."""
    servers: set[str] = set()
    address_by_name: dict[str, str] = {}
    for index, registry in enumerate(registries):
        place = f"{path}/{REGISTRIES}/{index}"
        if registry.server.lower() in servers:
            raise Unprocessable(f"{place}/server", f"{registry.server} is listed twice")
        servers.add(registry.server.lower())
        if registry.certificate_path is not None and registry.connection_type == "0":
            raise Unprocessable(f"{place}/certificate_path", "given for a registry without TLS (connection_type 0)")
        address, _, name = (registry.hosts_string or "").partition(" ")
        if name and address_by_name.setdefault(name.lower(), address) != address:
            raise Unprocessable(f"{place}/hosts_string", f"{name} has two addresses")


def place_of(host: str, port: int) -> str:
    """Return ``host:port``, in one spelling."""
    try:
        address = ip_address(host)
    except ValueError:
        return f"{host.lower()}:{port}"
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def places_of_registries(registries: Sequence[Registry]) -> tuple[str, ...]:
    """Return where the registries answer, as `place_of`.

    A name is replaced by its address in a ``hosts_string``; a name without one stays, as only the nodes can resolve it.
    """
    entries = [each.hosts_string.partition(" ") for each in registries if each.hosts_string is not None]
    address_by_name = {name.lower(): address for address, _, name in entries}
    places: dict[str, None] = {}
    for registry in registries:
        host, _, port = registry.server.partition(":")
        number = int(port or ("443" if registry.connection_type == "1" else "80"))
        places[place_of(address_by_name.get(host.lower(), host), number)] = None
    return tuple(places)


def check_certificate(pem: bytes) -> None:
    """Refuse content that is no certificate in PEM form, or several. Raises ValueError."""
    load_pem_x509_certificates(pem)
