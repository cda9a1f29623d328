"""The URLs of services, in settings and in requests."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit


def read_service_url(text: str) -> SplitResult | None:
    """Return the parts of an http or https URL without credentials, query and fragment; None: it is another text."""
    # `urlsplit` removes line ends, and leaves other characters that no address has.
    if not text.isprintable() or " " in text:
        return None
    try:
        parts = urlsplit(text)
        has_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets, or a port that is none
        return None
    return None if not has_address or "@" in parts.netloc or parts.query or parts.fragment else parts


def check_service_url(name: str, given: str) -> None:
    """Raise ValueError with the name of the setting unless it is such a URL."""
    if read_service_url(given) is None:
        raise ValueError(f"{name}: an http or https URL without credentials and query expected")
