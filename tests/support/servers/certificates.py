"""Certificates for tests: an authority and the certificates that it signs, as PEM files."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import count
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_serials = count(1)


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


@dataclass
class Authority:
    """A CA with its certificate in a file."""

    folder: Path
    name: str = "ca"
    valid: timedelta = timedelta(hours=1)
    file: Path = field(init=False)
    _key: ec.EllipticCurvePrivateKey = field(init=False)
    _certificate: x509.Certificate = field(init=False)

    def __post_init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed(self.name, self._key, is_ca=True, names=[])
        self.file = self.folder / f"{self.name}.pem"
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, dns: str | None = None, file: str | None = None, has_names: bool = True) -> Pair:
        """Issue a certificate for 127.0.0.1, and for ``dns`` if given; replaces files of the same name.

        ``has_names``: False leaves out the subject alternative names, as older certificates do.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.IPAddress(ip_address("127.0.0.1"))]
        if dns is not None:
            names.append(x509.DNSName(dns))
        certificate = self._signed(name, key, is_ca=False, names=names if has_names else [])
        pair = Pair(self.folder / f"{file or name}.crt", self.folder / f"{file or name}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return pair

    def _signed(
        self, name: str, key: ec.EllipticCurvePrivateKey, *, is_ca: bool, names: list[x509.GeneralName]
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        issuer = subject if is_ca else self._certificate.subject
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(next(_serials))
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + self.valid)
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())
