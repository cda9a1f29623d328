"""A cluster's certificate authority, its serving certificate and its client certificates.

All keys are elliptic curve keys: generating one takes a fraction of a millisecond, so a cluster starts at once.
"""

from __future__ import annotations

import hashlib
import ssl
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _alternative_names(sans: Iterable[str]) -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = []
    for san in dict.fromkeys(sans):
        try:
            names.append(x509.IPAddress(ip_address(san)))
        except ValueError:
            names.append(x509.DNSName(san))
    return x509.SubjectAlternativeName(names)


def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """Return the private key as PEM, unencrypted."""
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


class Authority:
    """A certificate authority, as ``/etc/kubernetes/pki/ca.{crt,key}``."""

    def __init__(self, common_name: str = "kubernetes") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(common_name)
        builder = (
            self._builder(self._subject, self._key.public_key(), valid=timedelta(days=3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(ca=True), critical=True)
        )
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def _builder(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, *, valid: timedelta
    ) -> x509.CertificateBuilder:
        moment = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(moment - timedelta(minutes=5))
            .not_valid_after(moment + valid)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def cert_hash(self) -> str:
        """Return ``sha256:<hex>`` of the public key's DER form, as kubeadm join's discovery takes it."""
        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return "sha256:" + hashlib.sha256(public).hexdigest()

    def issue_client(self, user: str, *, groups: Sequence[str]) -> tuple[str, str]:
        """Return (certificate PEM, key PEM) that identifies ``user`` of ``groups`` for a year."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            self._builder(_name(user, groups), key.public_key(), valid=timedelta(days=365))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM).decode(), key_pem(key)

    def server_context(self, sans: Iterable[str]) -> ssl.SSLContext:
        """Return the TLS context of an API server, which accepts client certificates of this authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            self._builder(_name("kube-apiserver"), key.public_key(), valid=timedelta(days=365))
            .add_extension(_alternative_names(sans), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # The ssl module loads a chain from files only; they exist for this call, readable by this user only.
        with tempfile.TemporaryDirectory(prefix="lab-apiserver-") as folder:
            chain = Path(folder) / "chain.pem"
            chain.write_text(certificate.public_bytes(serialization.Encoding.PEM).decode() + key_pem(key))
            context.load_cert_chain(chain)
        context.load_verify_locations(cadata=self.pem)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        return context


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not ca,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )
