"""Plug-ins: executables ``kubevnfm-NAME`` beside the own one, then on PATH. Nothing heavy is imported before one is run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NoReturn

_PREFIX: Final = "kubevnfm-"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


def path_of(name: str, environment: Mapping[str, str]) -> str | None:
    """Return the path of a plug-in; None if there is no such executable."""
    if not _NAME.fullmatch(name):
        return None
    for folder in _folders(environment):
        path = os.path.join(folder, f"{_PREFIX}{name}")  # noqa: PTH118  # pathlib takes a tenth of the start
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            return path
    return None


def run(path: str, arguments: Sequence[str]) -> NoReturn:
    """Become the plug-in."""
    os.execv(path, [path, *arguments])  # noqa: S606


def names(environment: Mapping[str, str]) -> list[str]:
    """Return the names of the plug-ins that exist."""
    found: set[str] = set()
    for folder in _folders(environment):
        try:
            entries = os.listdir(folder)  # noqa: PTH208
        except OSError:
            continue
        found.update(one.removeprefix(_PREFIX) for one in entries if one.startswith(_PREFIX))
    return sorted(name for name in found if path_of(name, environment))


def _folders(environment: Mapping[str, str]) -> Iterator[str]:
    # `python -c` and `-m` leave a word there that is no path, and would stand for the working directory.
    own = [os.path.dirname(os.path.abspath(one)) for one in (sys.argv[0], sys.executable) if os.sep in one]  # noqa: PTH100, PTH120
    yield from own
    # A relative folder would run what others put into the working directory.
    yield from (one for one in environment.get("PATH", "").split(os.pathsep) if os.path.isabs(one))  # noqa: PTH117
