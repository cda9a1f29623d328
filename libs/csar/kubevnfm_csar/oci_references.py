"""References to content in OCI registries, as requests and artifact orders have them. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

_SCHEME: Final = "oci://"
_LONGEST: Final = 512
_LONGEST_NAME: Final = 255
_COMPONENT: Final = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_HOST: Final = re.compile(r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
DIGEST_PATTERN: Final = r"^sha256:[0-9a-f]{64}$"
_DIGEST: Final = re.compile(DIGEST_PATTERN)


def is_reference(place: object) -> bool:
    """Return whether a place has the scheme of registries."""
    return isinstance(place, str) and place.startswith(_SCHEME)


@dataclass(frozen=True)
class OciReference:
    """Content of a registry by the digest of its manifest."""

    host: str
    """With its port, if it has one."""
    name: str
    """The repository."""
    digest: str

    @classmethod
    def from_text(cls, place: str, digest: str) -> Self:
        """Read ``oci://<host>/<name>`` and ``sha256:<hex>``. Raises ValueError that says what was expected."""
        if not _DIGEST.fullmatch(digest):
            raise ValueError("sha256: and 64 hexadecimal digits expected as the digest")
        host, _, name = place.removeprefix(_SCHEME).partition("/")
        if not place.startswith(_SCHEME) or len(place) > _LONGEST or not _HOST.fullmatch(host) or not name:
            raise ValueError("oci://<host>/<repository> expected")
        if len(name) > _LONGEST_NAME or not all(_COMPONENT.fullmatch(each) for each in name.split("/")):
            raise ValueError("a repository without tag expected, of small letters, digits, dots, dashes and slashes")
        try:
            # Reading the port checks it, and the split an address of version 6.
            named = urlsplit(f"https://{host}/")
            is_host = bool(named.hostname) and named.port != 0
        except ValueError:
            is_host = False
        if not is_host:
            raise ValueError("oci://<host>/<repository> expected")
        return cls(host, name, digest)

    @property
    def hex(self) -> str:
        """The digest without its algorithm."""
        return self.digest.partition(":")[2]
