"""CMS signatures for tests, as providers of VNF packages create them."""

from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs7 import PKCS7Options, PKCS7SignatureBuilder
from servers.certificates import Pair


def cms(content: bytes, signer: Pair, *options: PKCS7Options, form: Encoding = Encoding.PEM) -> bytes:
    """Sign as ``openssl cms -sign -binary`` does."""
    key = load_pem_private_key(signer.key.read_bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(signer.certificate.read_bytes())
    detached = () if PKCS7Options.Text in options else (PKCS7Options.DetachedSignature,)
    builder = PKCS7SignatureBuilder().set_data(content).add_signer(certificate, key, hashes.SHA256())
    signed = builder.sign(form, [PKCS7Options.Binary, *detached, *(o for o in options if o is not PKCS7Options.Text)])
    return signed.replace(b" PKCS7-----", b" CMS-----")
