"""The names that a template gives to the machines of a VDU, their ports and volumes: ``<node>-<number>``.

The nodes of a VNFD can have such names themselves, so a name is first looked for as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_NUMBERED: Final = re.compile(r"(.+)-(\d{1,20})", re.ASCII | re.DOTALL)
"""A VNFD multiplies numbers of up to 2**53, so 20 digits are enough."""


def numbered(name: str) -> tuple[str, int | None]:
    """Return the name without its number, and the number: ``WEB-2``. None: it has none."""
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found is not None else (name, None)


def node_of(name: str, nodes: Collection[str]) -> str | None:
    """Return the node of the VNFD that a resource of the template stands for; None: it stands for none of them."""
    if name in nodes:
        return name
    plain, _ = numbered(name)
    return plain if plain in nodes else None


def number_of(name: str, node: str) -> int | None:
    """Return the number of a clone of the node; None: the name is not that of one."""
    plain, number = numbered(name)
    return number if plain == node else None
