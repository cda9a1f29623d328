"""Gateways by name: ``~/.config/kubevnfm/config.toml``, and what the environment and the command say.

    current = "plant"

    [contexts.plant]
    url = "https://vnfm.example:9890"
    ca = "plant-ca.pem"
    user = "ada"
    password_file = "plant.password"

Secrets are in files that their owner alone can read, or in the environment: ``token_file``, ``token_env``, ``password_file``, ``password_env``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from kubevnfm_cli.faults import UsageFault

DEFAULT_URL: Final = "http://127.0.0.1:9890"
_MOST_BYTES: Final = 1 << 20
_PATHS: Final = ("ca", "certificate", "key", "token_file", "password_file", "clouds_file", "proxy_password_file")
_VARIABLES: Final = {
    "user": "KUBEVNFM_CLIENT_USER",
    "password_env": "KUBEVNFM_CLIENT_PASSWORD",
    "token_env": "KUBEVNFM_CLIENT_TOKEN",
    "auth_token_env": "KUBEVNFM_CLIENT_AUTH_TOKEN",
    "ca": "KUBEVNFM_CLIENT_CA",
    "certificate": "KUBEVNFM_CLIENT_CERTIFICATE",
    "key": "KUBEVNFM_CLIENT_KEY",
}
"""The fields of a context that the environment gives; those that end in ``_env`` name the variable."""


@dataclass(frozen=True)
class Context:
    """A gateway, and how to authenticate there. It has no secrets, only where they are."""

    url: str = DEFAULT_URL
    ca: str | None = None
    """PEM file of the CAs that issued the gateway's certificate; None: the machine's CAs."""
    certificate: str | None = None
    """PEM file of a client certificate."""
    key: str | None = None
    """PEM file of its key."""
    user: str | None = None
    """With a password: HTTP Basic."""
    password_file: str | None = None
    password_env: str | None = None
    token_file: str | None = None
    """File of a bearer token."""
    token_env: str | None = None
    auth_token_env: str | None = None
    """The variable with a token of Keystone."""
    cloud: str | None = None
    """An entry of clouds.yaml: a token is requested from its Keystone."""
    clouds_file: str | None = None
    proxy: str | None = None
    """The proxy to the gateway, ``none`` for none; None: that of the environment."""
    proxy_user: str | None = None
    proxy_password_file: str | None = None
    proxy_password_env: str | None = None
    insecure_skip_tls_verify: bool = False
    """Whether any certificate of the gateway is taken for its own."""

    @property
    def has_credentials(self) -> bool:
        """Whether it says how to authenticate."""
        return any((self.certificate, self.user, self.token_file, self.token_env, self.auth_token_env, self.cloud))


@dataclass(frozen=True)
class Contexts:
    """The content of the configuration file."""

    current: str | None
    by_name: Mapping[str, Context]


INSECURE: Final = "insecure_skip_tls_verify"
NAMES: Final = tuple(field.name for field in fields(Context))


def config_path(environment: Mapping[str, str]) -> Path:
    """Return the configuration file's path."""
    base = environment.get("XDG_CONFIG_HOME") or ""
    folder = Path(base) if base.startswith("/") else Path(environment.get("HOME") or "~").expanduser() / ".config"
    return folder / "kubevnfm" / "config.toml"


def read_contexts(path: Path, draft: Path | None = None) -> Contexts:
    """Return the contexts of a file; none if it does not exist. ``draft``: has what will be in it. Raises UsageFault."""
    source = draft or path
    if not source.exists():
        return Contexts(None, {})
    import tomllib

    try:
        _check_writers(source)
        with source.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise UsageFault(f"{path}: at most 1 MiB expected")
        read = tomllib.loads(content.decode())
    except OSError as error:
        raise UsageFault(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageFault(f"{path}: {error}") from error
    unknown = set(read) - {"current", "contexts"}
    if unknown:
        raise UsageFault(f"{path}: {sorted(unknown)[0]}: current and contexts expected")
    contexts, current = read.get("contexts", {}), read.get("current")
    if not isinstance(contexts, dict) or not (current is None or isinstance(current, str)):
        raise UsageFault(f"{path}: current is a text, contexts are tables")
    return Contexts(current, {name: _context(path, name, table) for name, table in contexts.items()})


def choose(
    environment: Mapping[str, str], *, context: str | None = None, url: str | None = None, path: Path | None = None
) -> Context:
    """Return the gateway of a command: ``--context``, ``--url``, ``KUBEVNFM_URL``, ``KUBEVNFM_CONTEXT``, the current context, the local one.

    The credentials of a context are sent to another URL only if the command names both.
    Raises UsageFault.
    """
    named = context or (None if url or environment.get("KUBEVNFM_URL") else environment.get("KUBEVNFM_CONTEXT"))
    if named is None and (url or environment.get("KUBEVNFM_URL")):
        return _with_environment(Context(url or environment["KUBEVNFM_URL"]), environment)
    file = path or config_path(environment)
    known = read_contexts(file)
    named = named or known.current
    if named is None:
        return _with_environment(Context(), environment)
    if named not in known.by_name:
        names = ", ".join(sorted(known.by_name)) or "none"
        raise UsageFault(f"context {named} does not exist in {file}; it has {names}")
    chosen = known.by_name[named]
    chosen = replace(chosen, url=url) if url else chosen
    return chosen if chosen.has_credentials else _with_environment(chosen, environment)


def _with_environment(context: Context, environment: Mapping[str, str]) -> Context:
    given: dict[str, Any] = {
        name: variable if name.endswith("_env") else environment[variable]
        for name, variable in _VARIABLES.items()
        if environment.get(variable) and getattr(context, name) is None
    }
    return replace(context, **given)


def _context(path: Path, name: str, table: Any) -> Context:
    place = f"{path}: contexts.{name}"
    if not isinstance(table, dict):
        raise UsageFault(f"{place}: a table expected")
    for key, value in table.items():
        if key in ("token", "password", "proxy_password"):
            raise UsageFault(f"{place}.{key}: a secret is not part of this file: {key}_file or {key}_env expected")
        if key not in NAMES:
            raise UsageFault(f"{place}.{key}: {', '.join(NAMES)} expected")
        if not isinstance(value, bool if key == INSECURE else str):
            raise UsageFault(f"{place}.{key}: {'true or false' if key == INSECURE else 'a text'} expected")
    if "url" not in table:
        raise UsageFault(f"{place}: url is missing")
    if "@" in table.get("proxy", ""):
        raise UsageFault(
            f"{place}.proxy: a login is not part of this file: proxy_user and proxy_password_file expected"
        )
    # A path is relative to the file that names it.
    paths = {key: str(path.parent / Path(table[key]).expanduser()) for key in _PATHS if key in table}
    return Context(**{**table, **paths})


def _check_writers(path: Path) -> None:
    """Refuse a file that others can write: it says where secrets are sent; and a pipe, which may never be written."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise UsageFault(f"{path}: a regular file expected")
    if mode & 0o022:
        raise UsageFault(f"{path}: other users can write it; chmod 600 expected")


def read_secret_file(path: Path) -> str:
    """Return the first line of a file that its owner alone can read. Raises UsageFault."""
    try:
        with path.open(encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise UsageFault(f"{path}: other users can read or write it; chmod 600 expected")
            line = file.readline(_MOST_BYTES).rstrip("\r\n")
    except OSError as error:
        raise UsageFault(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise UsageFault(f"{path}: a text expected") from None
    if not line:
        raise UsageFault(f"{path}: it is empty")
    return line


def secret(context: Context, kind: str, environment: Mapping[str, str]) -> str | None:
    """Return the secret ``token``, ``password``, ``auth_token`` or ``proxy_password`` of a context; None if it names none. Raises UsageFault."""
    variable, file = getattr(context, f"{kind}_env"), getattr(context, f"{kind}_file", None)
    if file:
        return read_secret_file(Path(file))
    if not variable:
        return None
    if not environment.get(variable):
        raise UsageFault(f"the environment variable {variable} is not set, and the context has its {kind} there")
    return environment[variable]
