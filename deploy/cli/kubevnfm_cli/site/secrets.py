"""Values that a site file takes from the environment or from files, and what of a value may be shown.

A value from outside is a `SecretText`, whose text no representation shows. An attribute whose name may mean a secret is
not shown either, wherever its value stands: the rule is wider than that of the gateway, because it need not be exact.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Final

from kubevnfm_cli.yaml_reader import Path

MASK: Final = "***"
_LARGEST: Final = 1024 * 1024
"""Bytes of a file with a value."""
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORD: Final = re.compile(
    r"pass|pwd|psk|pswd|secret|token|cred|kubeconfig|keytab|htpasswd|(key|keys|pw)$|^(otp|puk|pin|auth)$"
)
_ABOUT_A_SECRET: Final = frozenset(
    {"url", "uri", "name", "names", "id", "ids", "type", "policy", "path", "file", "mode", "port"}
)
"""A name that ends so is about a secret."""
SECRET_NAMES: Final = "x_secret_names"  # noqa: S105 - the name of an attribute
"""An attribute that lists further names of secrets, in and below its map."""
_LOGIN_IN_URL: Final = re.compile(r"^[a-z][a-z0-9+.-]*://[^/@\s]+@", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class SecretText:
    """A value that is read from outside of the site file."""

    origin: str
    """``env NAME`` or ``file PATH``, as the site file has it."""
    text: str

    def __repr__(self) -> str:
        return f"SecretText({self.origin})"

    def __str__(self) -> str:
        return MASK


class ValueMissing(ValueError):
    """The value that ``valueFrom`` names does not exist, or cannot be read."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(problem)
        self.path = path


def is_value_from(value: Any) -> bool:
    """Return whether a value is ``{valueFrom: ...}``."""
    return isinstance(value, Mapping) and set(value) == {"valueFrom"}


def with_values(value: Any, folder: FilePath, environment: Mapping[str, str], path: Path = ()) -> Any:
    """Return a tree in which each ``valueFrom`` is a `SecretText`. Raises ValueMissing."""
    if is_value_from(value):
        return _read(value["valueFrom"], folder, environment, path)
    if isinstance(value, dict):
        return {name: with_values(inner, folder, environment, (*path, name)) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_values(inner, folder, environment, (*path, index)) for index, inner in enumerate(value)]
    return value


def _read(source: Any, folder: FilePath, environment: Mapping[str, str], path: Path) -> SecretText:
    named = list(source.items()) if isinstance(source, Mapping) else []
    if len(named) != 1 or named[0][0] not in ("env", "file") or not isinstance(named[0][1], str):
        raise ValueMissing(path, "valueFrom: {env: NAME} or {file: PATH} expected")
    kind, name = named[0]
    if kind == "env":
        if name not in environment:
            raise ValueMissing(path, f"the environment has no variable {name}")
        return SecretText(f"env {name}", environment[name])
    try:
        with (folder / name).open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueMissing(path, f"{name}: at most {_LARGEST} bytes expected")
        text = content.decode()
    except (OSError, ValueError) as error:
        if isinstance(error, ValueMissing):
            raise
        reason = error.strerror if isinstance(error, OSError) else "a text in UTF-8 expected"
        raise ValueMissing(path, f"{name}: {reason}") from None
    return SecretText(f"file {name}", text.removesuffix("\n").removesuffix("\r"))


def _mapped(tree: Any, change: Callable[[SecretText], Any]) -> Any:
    if isinstance(tree, SecretText):
        return change(tree)
    if isinstance(tree, dict):
        return {name: _mapped(inner, change) for name, inner in tree.items()}
    if isinstance(tree, list):
        return [_mapped(inner, change) for inner in tree]
    return tree


def revealed(tree: Any) -> Any:
    """Return the tree with its texts in clear: for the body of a request only."""
    return _mapped(tree, lambda secret: secret.text)


def may_be_secret(name: str) -> bool:
    """Return whether an attribute of this name may hold a secret."""
    words = [word.lower() for word in _WORDS.findall(name[:256])]
    return any(map(_SECRET_WORD.search, words)) and words[-1] not in _ABOUT_A_SECRET


def has_login(value: Any) -> bool:
    """Return whether a value is a URL with a user or password in it."""
    return isinstance(value, str) and _LOGIN_IN_URL.match(value) is not None


def shown(value: Any, path: Path) -> str:
    """Return a value for a diff: ``***`` for what is or may be a secret, and maps and lists by their size."""
    if isinstance(value, SecretText) or any(isinstance(part, str) and may_be_secret(part) for part in path):
        return MASK
    if has_login(value):
        return MASK
    if isinstance(value, dict):
        return f"{{{len(value)} attributes}}" if value else "{}"
    if isinstance(value, list):
        return f"[{len(value)} items]" if value else "[]"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."


def digest(tree: Any) -> str:
    """Return a hash of the tree that says nothing about its secrets: they count by where they come from.

    Values of attributes whose names may mean a secret count as one, as a hash of a short password could be guessed.
    """
    canonical = json.dumps(_without_secrets(tree), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def _without_secrets(tree: Any) -> Any:
    if isinstance(tree, SecretText):
        return {"valueFrom": tree.origin}
    if isinstance(tree, dict):
        return {
            name: MASK
            if may_be_secret(name) and not isinstance(inner, dict | list | SecretText)
            else _without_secrets(inner)
            for name, inner in tree.items()
        }
    if isinstance(tree, list):
        return [_without_secrets(inner) for inner in tree]
    return MASK if has_login(tree) else tree
