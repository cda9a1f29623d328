"""The servers that a service uses, read from its settings: packages may not reach them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from kubevnfm_kit.proxies import environment_proxies
from pydantic import BaseModel, SecretStr

_PORTS: Final[Mapping[str, int]] = {
    "http": 80,
    "https": 443,
    "amqp": 5672,
    "amqps": 5671,
    "mongodb": 27017,
}
_HOST_LISTS: Final = frozenset({"receiver_hosts"})
"""Settings that are hosts without a scheme, separated by commas."""
_NOT_OURS: Final = frozenset({"ssh_port"})
"""Settings that are ports of others."""


@dataclass(frozen=True)
class Peer:
    """A server that a service uses, or its own listener."""

    setting: str
    """The name of the setting that names it."""
    host: str
    port: int | None


def peers_of(settings: BaseModel) -> tuple[Peer, ...]:
    """Return the peers that the settings name: every URL in them, their hosts, and the proxies of the environment."""
    return tuple(dict.fromkeys((*_configured(settings), *_proxies())))


def peer_at(url: str, *, setting: str) -> tuple[Peer, ...]:
    """Return the servers of a URL; those of MongoDB have several. Empty for a text that is no URL with a host."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return ()
    authority = rest.partition("/")[0].partition("?")[0].rpartition("@")[2]
    return tuple(_host(each, _PORTS.get(scheme.lower()), setting) for each in authority.split(",") if each)


def own_ports(settings: BaseModel) -> frozenset[int]:
    """Return the ports at which a process with these settings listens."""
    found = {
        value
        for name, value in settings
        if (name == "port" or name.endswith("_port")) and name not in _NOT_OURS and isinstance(value, int)
    }
    return frozenset(found - {0})


def _configured(settings: BaseModel) -> Iterator[Peer]:
    for name, value in settings:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if not isinstance(text, str):
            continue
        if name in _HOST_LISTS:
            for each in text.split(","):
                if each.strip():
                    yield _host(each.strip(), None, name)
        else:
            yield from peer_at(text, setting=name)


def _proxies() -> Iterator[Peer]:
    proxies = environment_proxies()
    for scheme, proxy in proxies.by_scheme.items():
        yield Peer(proxies.named[scheme], proxy.host, proxy.port)


def _host(text: str, default_port: int | None, setting: str) -> Peer:
    parts = urlsplit(f"//{text}")
    try:
        port = parts.port
    except ValueError:
        port = None
    return Peer(setting, parts.hostname or "", port or default_port)


def ports_of(peers: Iterable[Peer]) -> Collection[int]:
    """Return the ports of peers, as far as they are known."""
    return {peer.port for peer in peers if peer.port is not None}
