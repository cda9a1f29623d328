"""Exits with 0 if the service in this container reports that it is ready. Docker runs it repeatedly."""

from __future__ import annotations

import os
import ssl
import sys
from http.client import HTTPConnection, HTTPSConnection


def _setting(name: str) -> str | None:
    """Return the setting of the service in this container."""
    values = (
        value for key, value in os.environ.items() if key.startswith("KUBEVNFM_") and key.endswith(name) and value
    )
    return next(values, None)


def _connection() -> HTTPConnection:
    host = os.environ.get("KUBEVNFM_HEALTH_HOST", "127.0.0.1")
    port = int(os.environ["KUBEVNFM_HEALTH_PORT"])
    client, key = _setting("_INTERNAL_TLS_CERTIFICATE"), _setting("_INTERNAL_TLS_KEY")
    has_tls = any(
        name.endswith("_TLS_CERTIFICATE") and "_INTERNAL_" not in name and value for name, value in os.environ.items()
    )
    if not has_tls:
        return HTTPConnection(host, port, timeout=4)
    context = ssl.create_default_context()
    context.check_hostname = False  # the server is in the same container, on loopback
    context.verify_mode = ssl.CERT_NONE
    if client and key:
        context.load_cert_chain(client, key)
    return HTTPSConnection(host, port, timeout=4, context=context)


try:
    connection = _connection()
    connection.request("GET", os.environ.get("KUBEVNFM_HEALTH_PATH", "/health/ready"))
    status = connection.getresponse().status
except OSError as error:
    sys.exit(f"does not answer: {error}")
sys.exit(0 if status == 200 else f"answers {status}")
