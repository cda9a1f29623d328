"""The users file: users with password or certificate, and their roles. Reloaded when it is replaced."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_access.caller import Role
from kubevnfm_access.passwords import PasswordHash

log = structlog.get_logger()


@dataclass(frozen=True)
class User:
    """One entry."""

    name: str
    roles: frozenset[Role]
    password: PasswordHash | None = field(default=None, repr=False)
    certificate: str | None = None
    """A name in the user's certificate: its common name, or a subject alternative name."""


class UsersFile:
    """Users by name. The file is TOML, a table ``[users.<name>]`` each: ``roles``, ``password``, ``certificate``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._signature()
        self._users = read_users(path)

    def users(self) -> Mapping[str, User]:
        """Return the file's present users; if it is unreadable, the earlier ones."""
        now = self._signature()
        if now != self._seen:
            # Before reading: a broken file is reported once, not with each request.
            self._seen = now
            try:
                self._users = read_users(self._path)
                log.info("users_replaced", file=str(self._path), users=len(self._users))
            except InvalidInput as error:
                log.warning("users_unusable", file=str(self._path), reason=str(error))
        return self._users

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino)


def read_users(path: Path) -> dict[str, User]:
    """Return the users of a file. Raises InvalidInput naming the place, never a value."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(f"{path}: {type(error).__name__}") from error
    except tomllib.TOMLDecodeError:
        raise _unusable(f"{path}: not TOML") from None  # its message may repeat a password
    table = document.get("users")
    if set(document) - {"users"} or not isinstance(table, dict):
        raise _unusable(f"{path}: tables [users.<name>] expected")
    return {name: _user(path, name, entry) for name, entry in table.items()}


def _unusable(reason: str) -> InvalidInput:
    return InvalidInput("auth_users_file", reason)


def _user(path: Path, name: str, entry: Any) -> User:
    place = f"{path}: users.{name}"
    if not isinstance(entry, dict) or set(entry) - {"roles", "password", "certificate"}:
        raise _unusable(f"{place}: roles, password and certificate are what a user has")
    roles, password, certificate = entry.get("roles"), entry.get("password"), entry.get("certificate")
    if not name or ":" in name:
        raise _unusable(f"{place}: a name without a colon expected")
    if not isinstance(roles, list) or not set(roles) <= set(Role):
        raise _unusable(f"{place}: roles: a list of {', '.join(Role)} expected")
    if certificate is not None and not isinstance(certificate, str):
        raise _unusable(f"{place}: certificate: a name expected")
    if password is None and certificate is None:
        raise _unusable(f"{place}: a password or a certificate expected")
    try:
        hashed = None if password is None else PasswordHash.parse(str(password))
    except ValueError:
        raise _unusable(f"{place}: password: what `kubevnfm hash-password` prints expected") from None
    return User(name, frozenset(Role(role) for role in roles), hashed, certificate)
