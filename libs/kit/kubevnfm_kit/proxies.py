"""The proxies of this process (docs/proxies.md)."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from kubevnfm_proxies.rule import Proxies

DIRECT: Final = Proxies()
"""No proxy."""
LOGIN_WANTED: Final = "it does not accept the login, or wants one (407)"
"""The failure of a proxy that answers 407."""


@cache
def environment_proxies() -> Proxies:
    """Return the rule by the environment, which is read once. Raises ProxyFault."""
    return Proxies.read(os.environ)
