"""Changes of the configuration file: written whole, in one step, for its owner alone."""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kubevnfm_cli.contexts import NAMES, read_contexts
from kubevnfm_cli.faults import UsageFault

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_HEAD: Final = "# Gateways of kubevnfm; `kubevnfm config` writes this file.\n"
_MODE: Final = 0o600


def read_tables(path: Path) -> dict[str, Any]:
    """Return the content as it is written: paths stay relative. Raises UsageFault for a file that could not be used."""
    read_contexts(path)
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_tables(path: Path, content: Mapping[str, Any]) -> None:
    """Replace the file; one that is read at the same time is the old or the new one, never a part. Raises UsageFault."""
    text = toml_of(content)
    # A link stays one: what it leads to is replaced.
    path = Path(os.path.realpath(path))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageFault(f"{path.parent}: {error.strerror}") from error
    draft = Path(name)
    try:
        os.fchmod(descriptor, _MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A file that cannot be read again does not replace one that could.
        read_contexts(path, draft)
        draft.replace(path)
    except OSError as error:
        raise UsageFault(f"{path}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def toml_of(content: Mapping[str, Any]) -> str:
    """Return the content as TOML."""
    lines = [_HEAD]
    if content.get("current") is not None:
        lines.append(f"current = {_text(content['current'])}\n")
    for name, table in content.get("contexts", {}).items():
        lines.append(f"\n[contexts.{_key(name)}]\n")
        lines += [f"{key} = {_text(table[key])}\n" for key in NAMES if key in table]
    return "".join(lines)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    # A string of JSON is one of TOML, but for the character that JSON leaves as it is.
    return json.dumps(value).replace("\x7f", "\\u007f")
