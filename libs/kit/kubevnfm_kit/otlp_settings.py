"""The collector of OpenTelemetry: the same settings for the spans of operations and for live spans."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self
from urllib.parse import unquote

from pydantic import BaseModel, Field, SecretStr, model_validator

from kubevnfm_kit.service_urls import check_service_url

_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE: Final = re.compile(r"[ -~]{0,8192}")


class OtlpSettings(BaseModel):
    """Where spans are sent. The collector belongs to the operator, so ``allowed_networks`` does not apply."""

    otlp_endpoint: str | None = None
    """The URL of a collector that takes OTLP over HTTP; ``/v1/traces`` is added: ``http://collector:4318``. None: nothing is sent."""
    otlp_headers: SecretStr = SecretStr("")
    """Headers for it, such as a token: ``<name>=<value>``, separated by commas; values are URL-encoded."""
    otlp_tls_ca: Path | None = None
    """PEM file of the CAs that may have issued its certificate; None: the CAs of the operating system."""
    trace_ratio: float = Field(default=1.0, ge=0, le=1)
    """The part of the traces that are sent, chosen by the trace's id. If a request names a trace, its flag decides.
    Traces of FAILED operations are always sent, without live spans."""
    live_span_ratio: float = Field(default=0.1, ge=0, le=1)
    """The part of the traces that have live spans, never more than ``trace_ratio``. If a request names a trace, its flag decides.
    The default keeps what they cost below 5 % of the processor time of small operations."""

    @model_validator(mode="after")
    def _collector_can_be_called(self) -> Self:
        if self.otlp_endpoint is not None:
            check_service_url("otlp_endpoint", self.otlp_endpoint)
        _read(self.otlp_headers)
        return self

    @property
    def given_otlp_headers(self) -> Mapping[str, str]:
        """The headers by name."""
        return _read(self.otlp_headers)

    @property
    def live_ratio(self) -> float:
        """The part of the traces that have live spans."""
        return min(self.trace_ratio, self.live_span_ratio)

    @property
    def traces_url(self) -> str | None:
        """The resource of the collector that takes spans; None: there is no collector."""
        return None if self.otlp_endpoint is None else f"{self.otlp_endpoint.rstrip('/')}/v1/traces"


def _read(given: SecretStr) -> Mapping[str, str]:
    found = {}
    for part in given.get_secret_value().split(","):
        if not part.strip():
            continue
        name, equals, value = (each.strip() for each in part.partition("="))
        value = unquote(value)
        # The text is a secret: the error must not repeat it.
        if not equals or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError("otlp_headers: <name>=<value> expected, separated by commas")
        found[name] = value
    return found
