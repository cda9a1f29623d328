"""The wirings in which the end-to-end tests run, and how a test is spread over them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from typing import Final, TypeVar

from real_cloud import REAL_CLOUD

T = TypeVar("T")

GIVEN_URL: Final = os.environ.get("KUBEVNFM_E2E_URL")
"""If set, the tests use this running installation in place of their own; see `GivenInstallation`."""
WIRINGS: Final = ("given",) if GIVEN_URL is not None else ("single",) if REAL_CLOUD is not None else ("single", "six")


def spread(variants: Sequence[T]) -> list[tuple[str, T]]:
    """Return (wiring, variant) for long tests: all variants, each in one wiring if there are as many wirings."""
    if len(WIRINGS) == len(variants):
        return list(zip(WIRINGS, variants, strict=True))
    return list(product(WIRINGS, variants))
