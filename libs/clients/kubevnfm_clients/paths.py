"""Values in the paths of URLs: quoted here for every client, so that a name leads to no other resource."""

from __future__ import annotations

from urllib.parse import quote


def quoted(*segments: str) -> str:
    """Return the segments, given in clear, as a path without a slash at its ends.

    Raises ValueError for a segment that is empty, ``.`` or ``..``: these have a meaning in every path, also if they are
    quoted (RFC 3986 5.2.4), so ``DELETE .../pods/..`` would delete something else.
    """
    if any(segment in {"", ".", ".."} for segment in segments):
        raise ValueError("a segment of a path may not be empty, . or ..")
    return "/".join(quote(segment, safe="") for segment in segments)
