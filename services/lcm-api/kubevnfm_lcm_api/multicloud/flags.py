"""Query parameters that are true or false."""

from __future__ import annotations

from typing import Final

from aiohttp import web
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_lcm_api.http.routes import Parameter

TRUTH: Final = ("true", "false")


def read_flag(request: web.Request, parameter: Parameter) -> bool:
    """Return whether a parameter is true; it is false if it is not given. Raises InvalidInput."""
    value = request.query.get(parameter.name, "false")
    if value not in parameter.values:
        raise InvalidInput(parameter.name, "true or false expected")
    return value == "true"
