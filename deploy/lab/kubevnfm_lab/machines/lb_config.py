"""Configurations of haproxy and keepalived, as far as the lab uses them.

Only what Kubernetes masters configure: frontends with ``bind``, backends with ``server``, ``listen`` sections; VRRP
instances with ``virtual_router_id``, ``priority`` and ``virtual_ipaddress``.
Sources: HAProxy's configuration manual, 4.1; keepalived.conf(5).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from kubevnfm_lab.machines.relay import Target
from kubevnfm_lab.machines.wordlist import words

SECTIONS = words(
    "global defaults frontend backend listen userlist peers resolvers program cache mailers ring http-errors fcgi-app "
    "crt-store traces"
)


class BadConfiguration(Exception):
    """An error that ``haproxy -c`` reports."""


@dataclass
class Frontend:
    """One listening part of a haproxy configuration."""

    name: str
    binds: list[tuple[str, int]] = field(default_factory=list)
    """Address (``*``: any) and port."""
    default_backend: str = ""
    servers: list[Target] = field(default_factory=list)


def parse_haproxy(text: str) -> list[Frontend]:
    """Return the frontends with their servers filled in; raise BadConfiguration that names the line."""
    frontends: list[Frontend] = []
    servers_by_backend: dict[str, list[Target]] = {}
    kind, current = "", Frontend("")
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.split("#", 1)[0].split()
        if not words:
            continue
        if not raw[:1].isspace():
            kind = words[0]
            if kind not in SECTIONS:
                raise BadConfiguration(f"[ALERT]    config : parsing [/etc/haproxy/haproxy.cfg:{number}] : "
                                       f"unknown keyword '{kind}' out of section.")  # fmt: skip
            current = Frontend(words[1] if len(words) > 1 else "")
            if kind in ("frontend", "listen"):
                frontends.append(current)
            if kind in ("backend", "listen"):
                servers_by_backend[current.name] = current.servers
            continue
        try:
            _line(kind, words, current)
        except (ValueError, IndexError) as error:
            raise BadConfiguration(
                f"[ALERT]    config : parsing [/etc/haproxy/haproxy.cfg:{number}] : '{words[0]}' : {error}"
            ) from error
    for frontend in frontends:
        if frontend.default_backend:
            if frontend.default_backend not in servers_by_backend:
                raise BadConfiguration(
                    f"[ALERT]    config : Proxy '{frontend.name}': unable to find required default_backend: "
                    f"'{frontend.default_backend}'."
                )
            frontend.servers = servers_by_backend[frontend.default_backend]
    return frontends


def _line(kind: str, words: list[str], current: Frontend) -> None:
    match words[0], kind:
        case "bind", "frontend" | "listen":
            for place in words[1].split(","):
                host, _, port = place.rpartition(":")
                current.binds.append((host.strip("[]") or "*", int(port)))
        case "default_backend", "frontend" | "listen":
            current.default_backend = words[1]
        case "server", "backend" | "listen":
            host, _, port = words[2].rpartition(":")
            current.servers.append((host.strip("[]"), int(port)))
        case "server" | "bind" | "default_backend", _:
            raise ValueError(f"not allowed in '{kind}' section")


@dataclass(frozen=True)
class VrrpInstance:
    """One VRRP instance that competes for virtual addresses."""

    router_id: int
    priority: int
    addresses: tuple[str, ...]
    preempts: bool = True
    """False: an address stays with its holder, whatever their priorities are (``nopreempt``)."""
    is_tracked: bool = False
    """Whether it holds addresses only while haproxy runs."""


def parse_keepalived(text: str) -> list[VrrpInstance]:
    """Return the VRRP instances of a keepalived.conf."""
    tokens = [word for line in text.splitlines() for word in line.split("#")[0].split("!")[0]
              .replace("{", " { ").replace("}", " } ").split()]  # fmt: skip
    instances = []
    for index, token in enumerate(tokens):
        if token == "vrrp_instance":
            block = _block(tokens, tokens.index("{", index))
            values = dict(itertools.pairwise(block))
            start = block.index("virtual_ipaddress") + 1 if "virtual_ipaddress" in block else len(block)
            inner = _block(block, start) if start < len(block) else []
            addresses = tuple(word.split("/")[0] for word in inner if word.count(".") == 3 or ":" in word)
            instances.append(
                VrrpInstance(
                    int(values.get("virtual_router_id", 51)),
                    int(values.get("priority", 100)),
                    addresses,
                    preempts="nopreempt" not in block,
                    is_tracked="track_script" in block,
                )
            )
    return instances


def _block(tokens: Sequence[str], opening: int) -> list[str]:
    depth, inner = 0, []
    for token in tokens[opening:]:
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth == 0:
            break
        inner.append(token)
    return inner[1:]
