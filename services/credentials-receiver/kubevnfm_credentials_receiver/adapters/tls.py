"""TLS of the call-back's server (CR-068)."""

from __future__ import annotations

import ssl
from pathlib import Path


def server_context(certificate: Path, key: Path, *, client_ca: Path | None) -> ssl.SSLContext:
    """Return a context of TLS 1.2 or later; with ``client_ca`` callers must show a certificate of that CA (mTLS)."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    if client_ca is not None:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
