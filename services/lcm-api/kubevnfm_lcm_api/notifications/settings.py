"""The operator's settings for calls to subscribers; a part of lcm-api's settings, and of those of the single process."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from kubevnfm_kit.tls import ClientTls
from pydantic import BaseModel, model_validator


class CallbackSettings(BaseModel):
    """How subscribers are called. ``allowed_networks`` and ``outbound_ca_file`` apply to these calls too."""

    test_callbacks: bool = True
    """Whether a subscription's callback URI must answer its test (SOL003 5.4.20.3.2)."""
    callback_tls_certificate: Path | None = None
    """PEM file of the client certificate for subscribers that require one; with ``callback_tls_key``. Read again when it
    is replaced."""
    callback_tls_key: Path | None = None
    """PEM file of its key."""

    @model_validator(mode="after")
    def _callback_pair_is_whole(self) -> Self:
        if (self.callback_tls_certificate is None) != (self.callback_tls_key is None):
            raise ValueError("callback_tls_certificate and callback_tls_key: both or none expected")
        return self

    def callback_tls(self, ca: Path | None) -> ClientTls | None:
        """Return the TLS files of calls with a client certificate; None if none is configured."""
        if self.callback_tls_certificate is None:
            return None
        return ClientTls(ca, self.callback_tls_certificate, self.callback_tls_key)
