"""Checks the values of a kubeconfig: what later code cannot store, parse or send is refused here, by its place.

The texts come from a workload cluster or from a script of a package. Errors never show a value.
"""

from __future__ import annotations

import re
import ssl
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from kubevnfm_kit.errors import Unprocessable

_LONGEST_URL: Final = 2048
_LONGEST_TOKEN: Final = 16 * 1024
"""API servers take headers of this size at most; tokens of OpenID providers have some KiB."""
_LONGEST_CERTIFICATES: Final = 128 * 1024
"""A bundle of CAs has some 100 certificates of 1.3 KiB each."""
_LONGEST_KEY: Final = 16 * 1024
"""An RSA key of 16,384 bits has 13 KiB."""
_VISIBLE: Final = re.compile(r"[!-~]+")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?")
_LONGEST_NAME: Final = 253
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PATH: Final = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?")
"""Segments that need no encoding and are neither ``.`` nor ``..``."""


def check_server_url(url: object, field: str) -> str:
    """Return the URL of an API server. Raises Unprocessable that names ``field``."""
    if not isinstance(url, str) or len(url) > _LONGEST_URL or not _VISIBLE.fullmatch(url):
        raise Unprocessable(field, f"an https URL of at most {_LONGEST_URL} characters expected")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    # A port that is no number, or above 65535; brackets that hold no address.
    except ValueError as error:
        raise Unprocessable(field, "an https URL with a host and a port from 1 to 65535 expected") from error
    if parts.scheme != "https" or not host:
        raise Unprocessable(field, "an https URL expected")
    if "@" in parts.netloc:
        raise Unprocessable(field, "no user name and no password expected in the URL")
    if port == 0 or parts.netloc.endswith(":"):
        raise Unprocessable(field, "a port from 1 to 65535 expected")
    if not _is_host(host):
        raise Unprocessable(field, "an IP address or a DNS name expected as host")
    # ``?`` and ``#`` without anything behind them leave no trace in the parts.
    if "?" in url or "#" in url or not _PATH.fullmatch(parts.path):
        raise Unprocessable(field, "a URL without query and fragment, and a plain path, expected")
    return url


def check_proxy_url(url: object, field: str) -> str:
    """Return the URL of a proxy, which may have a user and a password. Raises Unprocessable that names ``field``."""
    wanted = f"an http URL of at most {_LONGEST_URL} characters with a host and a port from 1 to 65535 expected"
    if not isinstance(url, str) or len(url) > _LONGEST_URL or not _VISIBLE.fullmatch(url):
        raise Unprocessable(field, wanted)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        # ``from None``: the text may be quoted, and have the password.
        raise Unprocessable(field, wanted) from None
    # TLS to the proxy would be verified with the CA of the cluster, and would present its client certificate.
    if (
        parts.scheme != "http"
        or not _is_host(host)
        or port == 0
        or parts.path not in ("", "/")
        or "?" in url
        or "#" in url
    ):
        raise Unprocessable(field, wanted)
    return url


def check_token(token: str, field: str) -> str:
    """Return a bearer token, which becomes a part of a header. Raises Unprocessable that names ``field``."""
    if len(token) > _LONGEST_TOKEN or not _VISIBLE.fullmatch(token):
        raise Unprocessable(field, f"1 to {_LONGEST_TOKEN} visible ASCII characters expected")
    return token


def check_certificates(text: str, field: str) -> str:
    """Return certificates in PEM form. Raises Unprocessable that names ``field``."""
    if len(text) > _LONGEST_CERTIFICATES:
        raise Unprocessable(field, f"at most {_LONGEST_CERTIFICATES} bytes of PEM expected")
    try:
        # By OpenSSL, which later has to load them.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise Unprocessable(field, "certificates in PEM form expected") from None
    return text


def check_client_certificate(certificate: str, key: str, *, certificate_field: str, key_field: str) -> None:
    """Raise Unprocessable unless they are a certificate and its private key in PEM form, without a password."""
    check_certificates(certificate, certificate_field)
    if len(key) > _LONGEST_KEY:
        raise Unprocessable(key_field, f"at most {_LONGEST_KEY} bytes of PEM expected")
    try:
        # The test for primes takes minutes for a large RSA key, and proves nothing that is needed here.
        private = serialization.load_pem_private_key(key.encode(), None, unsafe_skip_rsa_key_validation=True)
    # ``from None``: the library's text may quote what it cannot read. TypeError: the key has a password.
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise Unprocessable(key_field, "a private key in PEM form without a password expected") from None
    try:
        is_of_key = x509.load_pem_x509_certificate(certificate.encode()).public_key() == private.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise Unprocessable(certificate_field, "a certificate in PEM form expected") from None
    if not is_of_key:
        raise Unprocessable(key_field, "the private key of the client certificate expected")


def _is_host(host: str) -> bool:
    try:
        address: IPv4Address | IPv6Address = ip_address(host)
    except ValueError:
        pass
    else:
        # A scope (``%eth0``) names an interface of this machine.
        return not (isinstance(address, IPv6Address) and address.scope_id)
    labels = host.removesuffix(".").split(".")
    # ``127.1`` and ``0x7f000001`` are addresses to most resolvers, which no rule about addresses recognises in the text.
    if len(host) > _LONGEST_NAME or _NUMBER.fullmatch(labels[-1]):
        return False
    return all(_LABEL.fullmatch(label) for label in labels)
