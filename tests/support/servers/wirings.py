"""The wirings in which the end-to-end tests run, and how a test is spread over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, Final

import pytest
from _pytest.mark import ParameterSet
from real.real_cloud import REAL_CLOUD

GIVEN_URL: Final = os.environ.get("KUBEVNFM_E2E_URL")
"""If set, the tests use this running installation in place of their own; see `GivenInstallation`."""
WIRINGS: Final = ("given",) if GIVEN_URL is not None else ("single",) if REAL_CLOUD is not None else ("single", "six")


def variants(*values: Iterable[Any], every_run: Callable[..., bool]) -> list[ParameterSet]:
    """Return (wiring, value, ...) for long tests; those for which ``every_run`` is false are ``deep``.

    Where there is one wiring only, none is.
    """
    return [
        pytest.param(*case, marks=() if len(WIRINGS) == 1 or every_run(*case) else pytest.mark.deep)
        for case in product(WIRINGS, *values)
    ]


in_six: Final = pytest.mark.parametrize("installation", WIRINGS, indirect=True)
"""For a test that crosses a border between services which no other test in six processes crosses; CONTRIBUTING.md has the list.

All others run in one process; in six they are ``deep``.
"""
deep_in_single: Final = pytest.mark.parametrize(
    "installation", variants(every_run=lambda wiring: wiring == "six"), indirect=True
)
"""For a long test of what only several processes have, such as messages on a broker, or of a story whose parts other tests show in one process."""
