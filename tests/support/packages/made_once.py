"""Packages of VNFs are made once in each process: reading, packing and checking one takes as long as many a test."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec

P = ParamSpec("P")


def made_once(make: Callable[Concatenate[Path, P], bytes]) -> Callable[Concatenate[Path, P], bytes]:
    """Return a function that keeps each package. ``make`` gets a folder to work in, on which the package does not depend."""
    made: dict[str, bytes] = {}

    @wraps(make)
    def package(folder: Path, /, *args: P.args, **named: P.kwargs) -> bytes:
        # Arguments are texts and mappings of texts, which have no hash.
        key = repr((args, sorted(named.items())))
        if key not in made:
            made[key] = make(folder, *args, **named)
        return made[key]

    return package
