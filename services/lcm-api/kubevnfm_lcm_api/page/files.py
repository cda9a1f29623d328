"""The built files of the web page, as they are answered: compressed, with their tags, and what a browser may do with them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from kubevnfm_kit.errors import NotFound

INDEX: Final = "index.html"
_HASHED: Final = "assets/"
"""The files below it have a hash of their content in their names."""
_TYPES: Final = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none';"
        # Svelte makes its own templates into HTML by this policy; texts of data never are (services/lcm-api/page).
        " require-trusted-types-for 'script'; trusted-types svelte-trusted-html"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding",
}


@dataclass(frozen=True)
class PageFile:
    """One file in each encoding that it is stored in."""

    content_type: str
    is_immutable: bool
    """Whether its name changes with its content."""
    by_encoding: Mapping[str, tuple[bytes, str]]
    """Content and entity tag, by Content-Encoding, the smallest first; ``identity`` is the last one."""

    def encoded(self, accepted: str) -> tuple[str, bytes, str]:
        """Return encoding, content and entity tag of the smallest form that ``Accept-Encoding`` admits (RFC 9110 12.5.3)."""
        admitted = {
            name.strip().lower()
            for name, _, quality in (part.partition(";") for part in accepted.split(","))
            if quality.replace(" ", "").rstrip("0.") != "q="
        }
        encoding = next((each for each in self.by_encoding if each in admitted), "identity")
        return (encoding, *self.by_encoding[encoding])


@cache
def page_files() -> Mapping[str, PageFile]:
    """Return the files by their paths below ``/ui/``; read when they are first asked for, as most processes serve none."""
    built = files(__package__) / "built"
    found = {}
    for folder, prefix in ((built, ""), (built / "assets", _HASHED)):
        for entry in folder.iterdir():
            kind = entry.name.rpartition(".")[2]
            if entry.is_file() and kind in _TYPES:
                brotli = folder / f"{entry.name}.br"
                found[prefix + entry.name] = _page_file(
                    entry.read_bytes(), brotli.read_bytes() if brotli.is_file() else None, kind, prefix
                )
    return found


def page_file(path: str) -> PageFile:
    """Return the file at a path below ``/ui/``; at a place of the page that is no file, its index. Raises NotFound."""
    known = page_files()
    found = known.get(path)
    if found is not None:
        return found
    # A missing file must not be answered with HTML, which a browser would take for a script of an earlier version.
    # An id in a place of the page may have a dot; files beside the index are not in folders.
    if path.startswith(_HASHED) or "." in path.partition("/")[0]:
        raise NotFound("the page has no such file")
    return known[INDEX]


def _page_file(content: bytes, brotli: bytes | None, kind: str, prefix: str) -> PageFile:
    forms = {"br": brotli, "gzip": gzip.compress(content, mtime=0), "identity": content}
    media_type = _TYPES[kind] if kind == "svg" else f"{_TYPES[kind]}; charset=utf-8"
    tagged = {name: (form, f'"{hashlib.sha256(form).hexdigest()[:32]}"') for name, form in forms.items() if form}
    return PageFile(media_type, prefix == _HASHED, tagged)
