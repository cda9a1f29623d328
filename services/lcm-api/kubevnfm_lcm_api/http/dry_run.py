"""The query parameter ``dry_run``: a request is checked as any other, and nothing is stored or begun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from aiohttp import web
from kubevnfm_access.caller import DRY_RUN
from kubevnfm_kit.errors import InvalidInput

M = TypeVar("M", bound=str)


def dry_run_mode(request: web.Request, modes: Sequence[M]) -> M | None:
    """Return the mode of a dry run; None if the request is to be carried out. Raises InvalidInput for any other value.

    `kubevnfm_access.caller.needed_role` lets readers ask some paths for what this returns a mode for.
    """
    given = request.query.get(DRY_RUN)
    if given is None:
        return None
    found = next((mode for mode in modes if mode == given), None)
    if found is None:
        raise InvalidInput(DRY_RUN, f"{', '.join(modes)} expected")
    return found
