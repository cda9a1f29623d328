"""The settings of the export of the inventory to A&AI; a part of those of infra-k8s."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from kubevnfm_kit.service_urls import check_service_url
from kubevnfm_kit.tls import ClientTls
from pydantic import BaseModel, Field, SecretStr, model_validator


class ExportSettings(BaseModel):
    """A&AI, and the access to it (multicloud.md MC-110)."""

    aai_url: str | None = None
    """The root of A&AI, ``https://aai.onap:8443``, without ``/aai``. None: there is no export."""
    aai_version: int = Field(default=14, ge=14, le=999)
    """The version of its schema, from 14 on, which has all nodes that are exported."""
    aai_user: str = ""
    """The user of HTTP basic authentication; "": none."""
    aai_password: SecretStr = SecretStr("")
    """Its password."""
    aai_tls_ca: Path | None = None
    """PEM file of the CAs that must have issued A&AI's certificate; None: those of the machine."""
    aai_tls_certificate: Path | None = None
    """PEM file of the client certificate for A&AI; with ``aai_tls_key``. Reloaded when replaced."""
    aai_tls_key: Path | None = None
    """PEM file of its key."""
    aai_parallel: int = Field(default=4, ge=1, le=32)
    """Transactions at the same time, never two of one VNF: A&AI is not safe with concurrent changes of one node."""
    aai_batch: int = Field(default=30, ge=1, le=1000)
    """Operations of a transaction. A&AI refuses more than its own limit, which is 30 unless its operator has changed it."""

    @model_validator(mode="after")
    def _aai_can_be_called(self) -> Self:
        if self.aai_url is not None:
            check_service_url("aai_url", self.aai_url)
            parts = urlsplit(self.aai_url)
            if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
                raise ValueError("aai_url: https expected, as the password would be readable on the way")
        if ":" in self.aai_user:
            raise ValueError("aai_user: a name without a colon expected, as HTTP basic authentication has it")
        if bool(self.aai_user) != bool(self.aai_password.get_secret_value()):
            raise ValueError("aai_user and aai_password: both or none expected")
        if (self.aai_tls_certificate is None) != (self.aai_tls_key is None):
            raise ValueError("aai_tls_certificate and aai_tls_key: both or none expected")
        return self

    @property
    def aai_tls(self) -> ClientTls:
        """The TLS of calls of A&AI."""
        return ClientTls(self.aai_tls_ca, self.aai_tls_certificate, self.aai_tls_key)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
