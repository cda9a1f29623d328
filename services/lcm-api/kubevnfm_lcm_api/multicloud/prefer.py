"""``Prefer`` (RFC 7240): how long a caller waits for the end of what it has asked for (multicloud.md MC-004)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from aiohttp import web

_USUAL_S: Final = 30
_LONGEST_S: Final = 120
_WAIT: Final = re.compile(r"wait\s*=\s*\"?(\d{1,9})\"?")


@dataclass(frozen=True)
class Preference:
    """The wait, and whether it was cut."""

    wait_s: int
    is_cut: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """The header of the answer that says what of the preference was applied."""
        return {"Preference-Applied": f"wait={self.wait_s}"} if self.is_cut else {}


def read_preference(request: web.Request) -> Preference:
    """Return the preference of a request; one that is not understood is ignored, as the RFC says."""
    for header in request.headers.getall("Prefer", []):
        for part in header.split(","):
            preference = part.partition(";")[0].strip().lower()
            if preference == "respond-async":
                return Preference(0)
            found = _WAIT.fullmatch(preference)
            if found is not None:
                wanted = int(found.group(1))
                return Preference(min(wanted, _LONGEST_S), is_cut=wanted > _LONGEST_S)
    return Preference(_USUAL_S)
