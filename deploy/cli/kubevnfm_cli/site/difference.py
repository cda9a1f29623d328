"""Compares what a site file wants with what exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_cli.site.secrets import MASK, SECRET_NAMES, SecretText, has_login, may_be_secret, shown
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


def differences(
    wanted: Any, found: Any, path: Path = (), secret_names: frozenset[str] = frozenset()
) -> Iterator[Difference]:
    """Yield where ``found`` is not as ``wanted``; what only ``found`` has is left as it is.

    Secrets are not compared: the gateway shows none. ``secret_names``: further names of secrets.
    """
    if isinstance(wanted, SecretText) or found == MASK:
        return
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        listed = wanted.get(SECRET_NAMES)
        secret_names |= frozenset(map(str, listed)) if isinstance(listed, list) else frozenset()
        for name, value in wanted.items():
            # The gateway leaves out what it takes for a secret.
            is_left_out = may_be_secret(name) or name in secret_names or has_login(value)
            if name in found or not is_left_out:
                yield from differences(value, found.get(name, ABSENT), (*path, name), secret_names)
    elif isinstance(wanted, list) and isinstance(found, Sequence) and len(wanted) == len(found):
        for index, value in enumerate(wanted):
            yield from differences(value, found[index], (*path, index), secret_names)
    elif found is ABSENT and wanted in (None, {}, []):
        return
    elif type(wanted) is bool or type(found) is bool:
        if wanted is not found:
            yield Difference(path, found, wanted)
    elif wanted != found:
        yield Difference(path, found, wanted)
