"""The settings of calls to addresses that requests name; a part of the settings of every service that makes such calls."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, field_validator

from kubevnfm_clients.outbound import AddressRules


class OutboundSettings(BaseModel):
    """The addresses that such calls may go to, and the certificates that they trust."""

    allowed_networks: str = ""
    """Networks that such calls may go to in addition to public addresses, divided by commas: ``10.20.0.0/16``."""
    outbound_ca_file: Path | None = None
    """PEM of the CAs that must have issued those servers' certificates; None: the system's."""
    proxy_resolves: bool = False
    """Whether the proxy of the environment resolves the names of those servers, where kubevnfm cannot: the proxy then has to refuse
    internal addresses itself. False: a name is resolved and judged here, and the proxy is asked to connect to its address."""

    @field_validator("allowed_networks")
    @classmethod
    def _allowed_networks_are_networks(cls, value: str) -> str:
        AddressRules.from_text(value)
        return value

    @property
    def address_rules(self) -> AddressRules:
        """The rules that ``allowed_networks`` and ``proxy_resolves`` stand for."""
        return AddressRules.from_text(self.allowed_networks, proxy_resolves=self.proxy_resolves)
