"""The URLs of services in settings."""

from __future__ import annotations

from urllib.parse import urlsplit


def check_service_url(name: str, given: str) -> None:
    """Raise ValueError with the name of the setting unless it is an http or https URL without credentials, query and fragment."""
    parts = urlsplit(given)
    is_url = parts.scheme in {"http", "https"} and bool(parts.hostname)
    if not is_url or parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(f"{name}: an http or https URL without credentials and query expected")
