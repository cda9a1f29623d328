"""TLS of listeners and of calls between services: TLS 1.2 or later, certificates reloaded when they are replaced."""

from __future__ import annotations

import asyncio
import asyncio.sslproto
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import structlog

log = structlog.get_logger()

LOOK_EVERY_S: Final = 5.0
"""Interval at which the files are checked, by three calls of stat. Certificates are renewed days ahead of their end."""

_TLS_BUFFER_BYTES: Final = 2**15
_REASON: Final = re.compile(r"certificate verify failed: (.+?)\.? \(_ssl")
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "wrong version number", "RECORD_LAYER_FAILURE", "record layer failure")
"""OpenSSL's texts for an answer that is no TLS record."""
_ALERTS: Final = (
    (
        ("UNSUPPORTED_PROTOCOL", "ALERT_PROTOCOL_VERSION"),
        "TLS 1.2 or later expected: the server speaks an older version",
    ),
    (("ALERT_CERTIFICATE_REQUIRED",), "the server asks for a client certificate"),
    (
        ("ALERT_UNKNOWN_CA", "ALERT_BAD_CERTIFICATE", "ALERT_CERTIFICATE_UNKNOWN", "ALERT_CERTIFICATE_EXPIRED"),
        "the server does not accept the client certificate",
    ),
    (("ALERT_HANDSHAKE_FAILURE",), "the server ended the TLS handshake: it may ask for a client certificate"),
)
"""OpenSSL's texts for the alerts of a server (RFC 8446 6.2), and what they mean for the caller."""

_Signature = tuple[tuple[int, int, int], ...]


def tls_failure(error: str) -> str:
    """Return, in one sentence, why TLS with a server failed; ``error``: the text of the error, which has OpenSSL's."""
    if any(text in error for text in _NO_TLS):
        return "the port does not speak TLS: use http instead of https, or another port"
    for texts, meaning in _ALERTS:
        if any(text in error for text in texts):
            return meaning
    found = _REASON.search(error)
    if found:
        return f"the TLS certificate is not trusted: {found[1]}"
    return "the server ended the TLS handshake" if "EOF occurred" in error else "the TLS handshake failed"


def machine_cas() -> str:
    """Return the certificates of the CAs that this machine trusts, as PEM; "" if it has none. Reads files."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile is not None:
        return _pem(Path(paths.cafile))
    # OpenSSL finds a CA in the folder by the hash of its name: 4042bcee.0.
    found = {each.resolve() for each in Path(paths.capath or "/nonexistent").glob("*.[0-9]")}
    return "\n".join(_pem(each) for each in sorted(found) if each.is_file())


def _pem(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True)
class ServerTls:
    """A listener's certificate, and the callers that it accepts."""

    certificate: Path
    """PEM: the server's certificate and its chain."""
    key: Path
    """PEM, without a passphrase."""
    client_ca: Path | None = None
    """PEM of the CAs that callers' certificates must come from; None: callers show none."""
    is_client_required: bool = True
    """With ``client_ca``: whether a caller without a certificate is rejected in the handshake."""

    def files(self) -> tuple[Path, ...]:
        """Return the files that a context is loaded from."""
        return tuple(path for path in (self.certificate, self.key, self.client_ca) if path is not None)

    def context(self) -> ssl.SSLContext:
        """Return a new context. Reads files. Raises OSError and ssl.SSLError."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        if self.client_ca is not None:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED if self.is_client_required else ssl.CERT_OPTIONAL
        return context


@dataclass(frozen=True)
class ClientTls:
    """The certificates that calls trust, and the one that they present."""

    ca: Path | None = None
    """PEM of the CAs that servers' certificates must come from; None: the machine's own."""
    certificate: Path | None = None
    key: Path | None = None
    is_pinned: bool = False
    """Whether ``ca`` holds the servers' own certificates, which are then trusted whatever host names they contain."""

    def files(self) -> tuple[Path, ...]:
        """Return the files that a context is loaded from."""
        return tuple(path for path in (self.ca, self.certificate, self.key) if path is not None)

    def load(self, context: ssl.SSLContext) -> None:
        """Load the files into a context; later handshakes use them. Raises OSError and ssl.SSLError."""
        if self.ca is not None:
            context.load_verify_locations(self.ca)
        if self.certificate is not None and self.key is not None:
            context.load_cert_chain(self.certificate, self.key)

    def context(self) -> ssl.SSLContext:
        """Return a context; without files it is the one that all share. Reads files. Raises OSError and ssl.SSLError."""
        if not self.files() and not self.is_pinned:
            return _of_the_machine()
        context = ssl.create_default_context(cafile=str(self.ca) if self.ca else None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.is_pinned:
            context.check_hostname = False
            # OpenSSL otherwise wants a chain up to a self-signed root, which a pinned server certificate need not have.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self.load(context)
        return context


def keep_tls_buffers_small() -> None:
    """Have each TLS connection that is made from now on reserve 32 KiB for what it receives; asyncio reserves 256 KiB.

    A record of TLS has 16 KiB at most, so a read returns no more either way. It counts in a process with thousands of watches.
    """
    asyncio.sslproto.SSLProtocol.max_size = _TLS_BUFFER_BYTES


@cache
def _of_the_machine() -> ssl.SSLContext:
    """Return the context that trusts the machine's CAs. To read them takes 20 ms, and a process has several users of them."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@asynccontextmanager
async def client_context(tls: ClientTls, *, look_every_s: float = LOOK_EVERY_S) -> AsyncIterator[ssl.SSLContext]:
    """Yield a context for calls that presents and trusts the present certificates of the files.

    A CA that is removed from its file is trusted until the process ends: a context can only add CAs.
    """
    context = await asyncio.to_thread(tls.context)
    async with watching(tls.files(), lambda: asyncio.to_thread(tls.load, context), look_every_s=look_every_s):
        yield context


@asynccontextmanager
async def watching(
    files: tuple[Path, ...], replaced: Callable[[], Awaitable[None]], *, look_every_s: float = LOOK_EVERY_S
) -> AsyncIterator[None]:
    """Within the block, await ``replaced()`` whenever one of the files has changed.

    A pair that does not fit (one file is written, the other not yet) is tried again at the next check; until then
    the earlier certificates stay in use.
    """
    if not files:
        yield
        return
    seen = await asyncio.to_thread(_signature, files)

    async def look() -> None:
        nonlocal seen
        while True:
            await asyncio.sleep(look_every_s)
            now = await asyncio.to_thread(_signature, files)
            if now == seen:
                continue
            try:
                await replaced()
            except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                log.warning("certificates_unusable", files=[str(path) for path in files], reason=str(error))
            # Only a pair that could be loaded counts as seen: any other is tried at the next check.
            else:
                seen = now
                log.info("certificates_replaced", files=[str(path) for path in files])

    task = asyncio.create_task(look(), name="certificates")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _signature(files: tuple[Path, ...]) -> _Signature:
    """Links are followed, because Kubernetes replaces a mounted secret by renaming a link."""
    return tuple(_one(path) for path in files)


def _one(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
