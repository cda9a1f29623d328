"""Signatures of VNF packages, verified by the ``openssl`` program: the library `cryptography` cannot verify CMS.

A separate process reads the untrusted signatures, and it reads large packages in pieces. Everything here blocks.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from kubevnfm_csar.archive import Csar
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.manifest import split_signature
from kubevnfm_csar.package import Package
from kubevnfm_csar.signed import SignedArchive, uncovered

log = structlog.get_logger()

_LONGEST_S: Final = 1800.0
_LISTED_FILES: Final = 5
_NO_SIGNER: Final = "signer certificate not found"
"""OpenSSL's text of CMS_R_SIGNER_CERTIFICATE_NOT_FOUND."""


class SignatureRefused(PackageRefused, code="signature-refused"):
    """A signature is not valid, its signer is not trusted, or a required signature is missing."""


class NoOpenssl(Exception):
    """Signatures must be verified and the openssl program is not installed."""


@dataclass(frozen=True)
class Signing:
    """How a package is signed."""

    option: str = ""
    certificate: str = ""
    """PEM, if the package contains it as a file."""


class PackageSignatures:
    """Verifies signatures against the certificates that an operator trusts; without any, against the content alone."""

    def __init__(self, *, anchors: Path | None, is_required: bool) -> None:
        """``anchors``: PEM of the authorities, or signers, that are trusted. Raises NoOpenssl; OSError; ValueError."""
        self._program = shutil.which("openssl")
        self._anchors, self._is_required = anchors, is_required
        self._anchor_pem = b""
        if is_required and anchors is None:
            raise ValueError("signed packages are required: trust anchors must be configured")
        if anchors is not None:
            if self._program is None:
                raise NoOpenssl("openssl is not installed: signatures of packages cannot be verified")
            self._anchor_pem = anchors.read_bytes()
            try:
                x509.load_pem_x509_certificates(self._anchor_pem)
            except ValueError as error:
                raise ValueError(f"{anchors} contains no certificates in PEM form") from error

    def outer(self, archive: SignedArchive, scratch: Path) -> tuple[Path, Signing]:
        """Return the CSAR within an option 2 package, its signature verified. Raises SignatureRefused."""
        csar = archive.unpack(archive.csar, scratch / "csar")
        signature = archive.unpack(archive.signature, scratch / "signature").read_bytes()
        certificate = ""
        if archive.certificate is not None:
            raw = archive.unpack(archive.certificate, scratch / "certificate").read_bytes()
            certificate = _pem(raw, archive.certificate)
        self._verify(signature, csar, certificate, name=archive.csar)
        return csar, Signing("OPTION_2", certificate)

    def inner(self, csar: Csar, package: Package, folder: Path) -> Signing:
        """Verify the signatures within a package that was unpacked to ``folder`` (option 1). Raises SignatureRefused."""
        security = package.security
        alone = {name for name, files in security.items() if name != csar.index.manifest}
        for name in sorted(alone):
            signature, *certificates = security[name]
            pem = _pem((folder / certificates[0]).read_bytes(), certificates[0]) if certificates else ""
            self._verify(_read(folder / signature, csar), folder / name, pem, name=name)
        manifest = csar.index.manifest
        text, signature_of_manifest = (
            split_signature((folder / manifest).read_bytes()) if manifest is not None else (b"", b"")
        )
        if manifest is None or not signature_of_manifest:
            if self._is_required:
                raise SignatureRefused("the package is not signed: neither its manifest nor the archive as a whole")
            return Signing("OPTION_1") if alone else Signing()
        named = csar.index.certificate
        certificate = _pem((folder / named).read_bytes(), named) if named is not None else ""
        with tempfile.NamedTemporaryFile(dir=folder.parent) as signed:
            signed.write(text)
            signed.flush()
            self._verify(signature_of_manifest, Path(signed.name), certificate, name=manifest)
        if self._anchors is not None:
            _refuse_uncovered(uncovered(csar, {file for files in security.values() for file in files}, alone), manifest)
        return Signing("OPTION_1", certificate)

    def _verify(self, signature: bytes, content: Path, certificate: str, *, name: str) -> None:
        """Raise SignatureRefused unless the signature fits the content and its signer is trusted."""
        if self._program is None:
            log.warning("signature_not_verified", file=name, reason="openssl is not installed")
            return
        with tempfile.TemporaryDirectory(dir=content.parent) as scratch:
            in_file, certificates = Path(scratch, "signature"), Path(scratch, "certificates")
            in_file.write_bytes(signature)
            known = certificate.encode() + self._anchor_pem
            certificates.write_bytes(known)
            form = "PEM" if signature.lstrip().startswith(b"-----") else "DER"
            arguments = ["-inform", form, "-in", str(in_file), "-content", str(content)]
            if known:
                arguments += ["-certfile", str(certificates)]
            problem = self._run([*arguments, *self._trust_options()])
        if problem is None:
            log.info("signature_fits", file=name, is_trusted=self._anchors is not None)
            return
        if _NO_SIGNER in problem and self._anchors is None and not known:
            log.warning(
                "signature_not_verified", file=name, reason="the package contains no certificate, and none is trusted"
            )
            return
        raise SignatureRefused(f"its signature is not valid ({_reason(problem)})", file=name)

    def _trust_options(self) -> Sequence[str]:
        if self._anchors is None:
            return ["-noverify"]
        # The system's authorities are for web servers; only an operator can trust the signer of a package.
        return ["-CAfile", str(self._anchors), "-no-CApath", "-no-CAstore", "-partial_chain", "-purpose", "any"]

    def _run(self, arguments: Sequence[str]) -> str | None:
        """Return None if the signature is valid, else the output of openssl."""
        assert self._program is not None
        command = [self._program, "cms", "-verify", "-binary", *arguments, "-out", "/dev/null"]
        try:
            # Without an environment: a variable such as OPENSSL_CONF must not change how openssl verifies.
            done = subprocess.run(  # noqa: S603  # fixed arguments: none of them comes from a package
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST_S, check=False, env={}
            )
        except subprocess.TimeoutExpired:
            return f"not verified within {_LONGEST_S:g} s"
        return None if done.returncode == 0 else done.stderr.decode(errors="replace")


def _read(path: Path, csar: Csar) -> bytes:
    """Return a signature file. Raises SignatureRefused for one that is too large to be a signature."""
    if path.stat().st_size > csar.limits.text_bytes:
        raise SignatureRefused(f"larger than the {csar.limits.text_bytes} bytes allowed", file=path.name)
    return path.read_bytes()


def _pem(raw: bytes, name: str) -> str:
    """Return the certificates of a file as PEM. Raises SignatureRefused if it contains none."""
    try:
        is_pem = raw.lstrip().startswith(b"-----")
        found = x509.load_pem_x509_certificates(raw) if is_pem else [x509.load_der_x509_certificate(raw)]
        return "".join(each.public_bytes(Encoding.PEM).decode() for each in found)
    except ValueError as error:
        raise SignatureRefused("not a certificate", file=name) from error


def _refuse_uncovered(names: Sequence[str], manifest: str) -> None:
    if names:
        more = ", ..." if len(names) > _LISTED_FILES else ""
        listed = ", ".join(names[:_LISTED_FILES]) + more
        raise SignatureRefused(f"it is signed, but has no digest of {listed}", file=manifest)


def _reason(problem: str) -> str:
    """Return the last error of OpenSSL in its words, such as ``unable to get local issuer certificate``."""
    for line in reversed(problem.splitlines()):
        parts = line.split(":")
        if "error" in parts and len(parts) > 5:  # id:error:number:library:function:reason:file:line:data
            data = parts[-1].removeprefix("Verify error:").strip()
            return data or parts[5]
    return "openssl rejected it"
