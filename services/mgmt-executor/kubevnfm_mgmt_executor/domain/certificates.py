"""Facts about a cluster's CA certificate, computed here instead of parsed from a program's output."""

from __future__ import annotations

import hashlib

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def public_key_hash(pem: str) -> str:
    """Return ``sha256:<hex>`` of the certificate's DER public key, as kubeadm join takes it. Raises ValueError.

    Source: kubeadm join, --discovery-token-ca-cert-hash (SubjectPublicKeyInfo, RFC 7469).
    """
    key = x509.load_pem_x509_certificate(pem.encode()).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(der).hexdigest()}"
