"""URLs that carry a secret: a login before the host, or a token in the query."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from kubevnfm_secrets.secret import MASK


def shown_url(url: str) -> str:
    """Return the URL with ``***`` for its login, the values of its query, and its fragment; ``***`` if it cannot be read.

    Any value of a query may be a token, whatever its name. A URL without these parts, and one that was shown already, stays as it is.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return MASK
    login, at, host = parts.netloc.rpartition("@")
    query = "&".join(_shown(piece) for piece in parts.query.split("&"))
    fragment = MASK if parts.fragment else ""
    if (at and login) or query != parts.query or fragment != parts.fragment:
        return urlunsplit((parts.scheme, f"{MASK if login else ''}{at}{host}", parts.path, query, fragment))
    # As it came: the parts may not give the same spelling again.
    return url


def _shown(piece: str) -> str:
    name, _, value = piece.partition("=")
    if not piece:
        return piece
    # Without a value the name itself may be the token; base64 ends with signs that are no value.
    return f"{name}={MASK}" if value.strip("=") else MASK
