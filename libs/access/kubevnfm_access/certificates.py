"""Callers by certificate: TLS or a trusted proxy has verified it; one of its names belongs to a user."""

from __future__ import annotations

import binascii
from base64 import b64decode
from datetime import UTC
from typing import Final
from urllib.parse import unquote

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from kubevnfm_kit.clock import Clock, machine_now
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_access.caller import Caller
from kubevnfm_access.credentials import Credentials
from kubevnfm_access.errors import Unauthenticated
from kubevnfm_access.users import UsersFile

_NAMES: Final = (x509.DNSName, x509.RFC822Name, x509.UniformResourceIdentifier)


class CertificateUsers:
    """`Authenticator` by certificate."""

    challenge = 'Certificate realm="kubevnfm"'

    def __init__(self, users: UsersFile, clock: Clock) -> None:
        self._users, self._clock = users, clock

    async def caller(self, credentials: Credentials) -> Caller | None:
        if credentials.certificate is None:
            return None
        try:
            certificate = x509.load_der_x509_certificate(credentials.certificate)
            names = names_in(certificate)
        except ValueError as error:
            raise Unauthenticated("the certificate cannot be read") from error
        # a connection may live longer than the certificate that opened it
        if certificate.not_valid_after_utc < machine_now(self._clock).astimezone(UTC):
            raise Unauthenticated("the certificate has expired")
        for user in self._users.users().values():
            if user.certificate is not None and user.certificate in names:
                ends = certificate.not_valid_after_utc.timestamp()
                return Caller(user.name, "certificate", user.roles, expires=ends)
        raise Unauthenticated("the client certificate does not match any configured user")


def names_in(certificate: x509.Certificate) -> set[str]:
    """Return the names that a certificate was issued for: the subject alternative names; without those, the common name."""
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        alternatives = None
    found = {str(name.value) for name in alternatives or () if isinstance(name, _NAMES)}
    # A certificate with alternative names is not matched by its common name (RFC 6125 6.4.4).
    if found:
        return found
    return {str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)}


def forwarded_certificate(header: str) -> bytes:
    """Return the DER of the certificate that a proxy forwards: RFC 9440's ``:base64:``, or URL-encoded PEM (nginx). Raises InvalidInput."""
    text = header.strip()
    try:
        if len(text) > 2 and text.startswith(":") and text.endswith(":"):
            return b64decode(text[1:-1], validate=True)
        return x509.load_pem_x509_certificate(unquote(text).encode()).public_bytes(Encoding.DER)
    except (ValueError, binascii.Error) as error:
        raise InvalidInput("client certificate", "the proxy sent a value that is not a certificate") from error
