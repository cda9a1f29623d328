"""``private_registry_installation_param``: the private registry that a VNF of one machine is made (sequences.md 2.9)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509 import load_pem_x509_certificates
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import Secret

from kubevnfm_cluster.forms import Form, secret, text
from kubevnfm_cluster.parameters import Proxy
from kubevnfm_cluster.registries import REGISTRY_USER, check_certificate
from kubevnfm_cluster.request import MachineLogin, in_clear_texts, read_part
from kubevnfm_cluster.ssh_login import PackagePath

REGISTRY_VNF: Final = "private_registry_installation_param"
REGISTRY_ROOT: Final = f"additionalParams/{REGISTRY_VNF}"
DEFAULT_IMAGE: Final = "registry:2"
_PORT: Final = "a port from 1 to 65535, but not 22"
_PORT_SCHEMA: Final = {"type": "integer", "minimum": 1, "maximum": 65_535, "not": {"const": 22}}


def _port(value: object) -> int:
    # Both the text and the number are in use. In Python, True is an int.
    if isinstance(value, bool) or not re.fullmatch(r"\d{1,5}", str(value)):
        raise ValueError
    port = int(str(value))
    if not 1 <= port <= 65_535 or port == 22:
        raise ValueError
    return port


class RegistryInstallation(MachineLogin):
    """How a machine becomes a private registry."""

    pairs: ClassVar = (("x_username", "x_password"), ("x_certificate_path", "x_certificate_key"))

    ssh_cp_name: Annotated[str, text("the port or floating IP for SSH")]
    image_path: PackagePath | None = None
    """An image as ``docker save`` writes it, in the package; None: it is pulled."""
    port_no: Annotated[int, Form(_PORT, _port, _PORT_SCHEMA)] = 5000
    """The published TCP port."""
    proxy: Proxy = Proxy()
    x_image: Annotated[str, text("the name of an image", r"[a-z0-9][A-Za-z0-9._:/@-]{0,254}")] = DEFAULT_IMAGE
    """The image that is pulled."""
    x_username: Annotated[str, text("one line of text without a colon", REGISTRY_USER)] | None = None
    """The login that the registry asks for; None: it asks for none."""
    # bcrypt takes no more bytes.
    x_password: Annotated[Secret, secret("1 to 72 printable ASCII characters", r"[\x20-\x7e]{1,72}")] | None = None
    x_certificate_path: PackagePath | None = None
    """The registry's certificate and those that it is signed by, in the package; None: it serves HTTP."""
    x_certificate_key: Annotated[Secret, secret("a private key in PEM form")] | None = None


def request_registry(additional_params: Mapping[str, object]) -> RegistryInstallation:
    """Return the registry that a request asks for; texts may be Secret leaves.

    Raises: InvalidInput naming the field (``additionalParams/private_registry_installation_param/...``).
    """
    return read_registry(in_clear_texts({REGISTRY_VNF: additional_params.get(REGISTRY_VNF)}))


def read_registry(additional_params: Mapping[str, object]) -> RegistryInstallation:
    """Return the registry in additionalParams that were accepted before; secrets may be sealed.

    Raises: InvalidInput as `request_registry`.
    """
    given = additional_params.get(REGISTRY_VNF)
    if given is None:
        raise InvalidInput(REGISTRY_ROOT, "missing: an object expected")
    return read_part(RegistryInstallation, given, path=REGISTRY_ROOT)


def check_key_of_certificate(certificate: bytes, key: str) -> None:
    """Refuse a certificate and a key that do not belong together. Raises Unprocessable naming the field."""
    try:
        check_certificate(certificate)
    except ValueError as error:
        raise Unprocessable(f"{REGISTRY_ROOT}/x_certificate_path", "a certificate in PEM form expected") from error
    place, form = f"{REGISTRY_ROOT}/x_certificate_key", (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    try:
        read = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Without the cause: it may quote the key.
        raise Unprocessable(place, "a private key in PEM form without a passphrase expected") from None
    (first, *_) = load_pem_x509_certificates(certificate)
    if read.public_key().public_bytes(*form) != first.public_key().public_bytes(*form):
        raise Unprocessable(place, "not the key of the first certificate in x_certificate_path")
