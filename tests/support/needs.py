"""The end of a test that cannot have a server or program that it needs."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def cannot_have(reason: str, *, on: str = "") -> NoReturn:
    """Skip the test, loudly; in CI (``CI`` is set) fail it. ``on`` names the server that it is not tested on."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(f"NOT TESTED{f' ON {on}' if on else ''}: {reason}")
