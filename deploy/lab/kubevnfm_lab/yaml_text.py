"""YAML by libyaml, if PyYAML has it: several times as fast, and scripts on machines read a kubeconfig at every call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def load(text: str | bytes) -> Any:
    """Return the one document. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=_LOADER)


def load_all(text: str | bytes) -> Iterator[Any]:
    """Yield the documents. Raises yaml.YAMLError."""
    return yaml.load_all(text, Loader=_LOADER)


def dump(document: object, *, sort_keys: bool = True) -> str:
    """Return the document as text in block form."""
    text: str = yaml.dump(document, Dumper=_DUMPER, sort_keys=sort_keys)
    return text
