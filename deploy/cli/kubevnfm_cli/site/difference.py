"""Compares what a site file wants with what exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_cli.site.secrets import MASK, SecretText, may_be_secret, shown
from kubevnfm_cli.yaml_reader import Path

ABSENT: Final = object()
"""Stands for a value that does not exist."""


@dataclass(frozen=True)
class Difference:
    """One value that is not as it is wanted."""

    path: Path
    found: Any
    wanted: Any

    def __str__(self) -> str:
        name = "/".join(map(str, self.path))
        wanted = shown(self.wanted, self.path)
        if self.found is ABSENT:
            return f"{name}: {wanted} (new)"
        return f"{name}: {shown(self.found, self.path)} -> {wanted}"


def differences(wanted: Any, found: Any, path: Path = ()) -> Iterator[Difference]:
    """Yield where ``found`` is not as ``wanted``; what only ``found`` has is left as it is.

    Secrets are not compared: the gateway shows none.
    """
    if isinstance(wanted, SecretText) or found == MASK:
        return
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for name, value in wanted.items():
            # The gateway leaves out what it takes for a secret.
            if name in found or not may_be_secret(name):
                yield from differences(value, found.get(name, ABSENT), (*path, name))
        return
    if isinstance(wanted, list) and isinstance(found, Sequence) and len(wanted) == len(found):
        for index, value in enumerate(wanted):
            yield from differences(value, found[index], (*path, index))
        return
    if isinstance(wanted, Mapping | list) and not wanted and found is ABSENT:
        return
    if wanted is None and found is ABSENT:
        return
    if type(wanted) is bool or type(found) is bool:
        if wanted is not found:
            yield Difference(path, found, wanted)
        return
    if wanted != found:
        yield Difference(path, found, wanted)
