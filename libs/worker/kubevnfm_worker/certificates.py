"""The certificates in the files of a process: which of them end soon, or have ended."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import structlog
from cryptography import x509
from kubevnfm_kit.clock import Clock, machine_now, rfc3339
from pydantic import BaseModel, SecretStr

from kubevnfm_worker.health import Lack, Part

log = structlog.get_logger()

ENDS_SOON: Final = timedelta(days=14)
"""The time before the end of a certificate from which it is reported."""
_READ_EVERY_S: Final = 60.0
_LARGEST: Final = 2**20
"""Bytes of a file that are read: the CAs of a whole machine are a quarter of it."""
_MOST_NAMED: Final = 5
"""Those that end first; a report has at most 16 parts."""
_OF_CAS: Final = ("_ca", "_ca_file", "_trust_anchors")
_OF_ITS_OWN: Final = ("_certificate",)
"""The ends of the names of settings with files of certificates."""
_IN_URLS: Final[Mapping[str, bool]] = {
    "tlscafile": True,
    "tlscertificatekeyfile": False,
    "cafile": True,
    "certfile": False,
}
"""The options of the URLs of MongoDB and RabbitMQ that name files, and whether CAs are in them."""
_END: Final = b"-----END CERTIFICATE-----"
_SHOWN: Final = Lack("A certificate of this process ends within 14 days, or has ended.")


@dataclass(frozen=True)
class CertificateFile:
    """A file with certificates."""

    path: Path
    is_of_cas: bool = False
    """Whether it has CAs that are trusted, each for itself, and not one certificate with its chain."""


def certificate_files(settings: BaseModel) -> Mapping[str, CertificateFile]:
    """Return the files with certificates that settings name, by the name of the setting."""
    found: dict[str, CertificateFile] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Path) and name.endswith(_OF_CAS + _OF_ITS_OWN):
            found[name] = CertificateFile(value, name.endswith(_OF_CAS))
        elif isinstance(value, SecretStr) and name.endswith("_url"):
            for option, file in parse_qsl(urlsplit(value.get_secret_value()).query):
                if (is_of_cas := _IN_URLS.get(option.lower())) is not None:
                    found[f"{name} {option}"] = CertificateFile(Path(file), is_of_cas)
    return found


def certificates_part(files: Mapping[str, CertificateFile], clock: Clock) -> Part:
    """Return the certificates of these files; others may be added to them later."""
    read_at, ends = -math.inf, dict[str, datetime]()

    async def look() -> Sequence[Lack]:
        nonlocal read_at, ends
        if not files:
            return []
        now = machine_now(clock)
        if time.monotonic() - read_at >= _READ_EVERY_S:
            read_at, ends = time.monotonic(), await asyncio.to_thread(_ends, dict(files), now)
        soon = sorted((end, name) for name, end in ends.items() if end - now <= ENDS_SOON)
        return [_lack(name, files[name].path, end, now) for end, name in soon[:_MOST_NAMED]]

    return Part("certificates", look, lambda: Lack("The files of certificates cannot be read."))


def _lack(name: str, file: Path, end: datetime, now: datetime) -> Lack:
    verb = "ends" if end > now else "has ended"
    text = f"The certificate of {name} ({file}) {verb} at {rfc3339(end)}: replace the file."
    return Lack(text, _SHOWN.text, of=name, ends_at=end)


def _ends(files: Mapping[str, CertificateFile], now: datetime) -> dict[str, datetime]:
    """Return when the certificates of each file end; those that cannot be read are left out, as who uses them logs that."""
    found: dict[str, datetime] = {}
    for name, file in files.items():
        try:
            with file.path.open("rb") as opened:
                ends = sorted(_read(opened.read(_LARGEST)))
        except OSError as error:
            log.debug("certificate_not_read", setting=name, reason=str(error))
            continue
        if file.is_of_cas:
            # One that has ended is trusted no more, and stays in the file beside the one that has taken its place.
            ends = [end for end in ends if end > now] or ends[-1:]
        if ends:
            found[name] = ends[0]
    return found


def _read(content: bytes) -> Iterator[datetime]:
    for each in content.split(_END)[:-1]:
        begin = each.rfind(b"-----BEGIN CERTIFICATE-----")
        if begin < 0:
            continue
        try:
            yield x509.load_pem_x509_certificate(each[begin:] + _END + b"\n").not_valid_after_utc
        except ValueError:
            continue
