"""``kubevnfm config``: the gateways that the command line knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from kubevnfm_cli import config_file, contexts
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.credentials import Authentication
from kubevnfm_cli.faults import DONE, UsageFault
from kubevnfm_cli.gateway import Gateway
from kubevnfm_cli.json_types import JsonObject
from kubevnfm_cli.names import did_you_mean
from kubevnfm_cli.nouns import value_at
from kubevnfm_cli.output import Column, Table, show_list
from kubevnfm_cli.terminal import printable

_TABLE: Final = Table(
    "context",
    (
        Column("CURRENT", value_at("current")),
        Column("NAME", value_at("name")),
        Column("URL", value_at("url")),
        Column("AUTHENTICATION", value_at("authentication")),
        Column("FILE", value_at("file"), is_wide=True),
    ),
    id_of=value_at("name"),
)
_OPTIONS: Final[Mapping[str, str]] = {
    "ca": "PEM file of the CAs of the gateway's certificate",
    "certificate": "PEM file of a client certificate",
    "key": "PEM file of its key",
    "user": "the user of HTTP Basic",
    "password_file": "file with the user's password",
    "password_env": "environment variable with it",
    "token_file": "file with a bearer token",
    "token_env": "environment variable with it",
    "auth_token_env": "environment variable with a token of Keystone",
    "cloud": "entry of clouds.yaml whose Keystone gives the token",
    "clouds_file": "the clouds.yaml",
    "proxy": "the proxy to the gateway, as http://HOST:PORT; none: none (default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY)",
    "proxy_user": "the user of the proxy",
    "proxy_password_file": "file with that user's password",
    "proxy_password_env": "environment variable with it",
}
"""The options of ``set-context`` beside ``--url``, which is a global one."""
_EPILOG: Final = """\
actions:
  view               the contexts, without secrets
  use-context NAME   make a context the current one
  set-context NAME   make a context, or change it: --url, --insecure-skip-tls-verify (--ca takes it back) and the
                     options below; an empty value removes one
  delete-context NAME

The file is ~/.config/kubevnfm/config.toml. It has no secrets, only where they are."""


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("action", metavar="ACTION", choices=list(_ACTIONS), help="what is done")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the context")
    for name, text in _OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE", help=text)
    parser.add_argument("--use", action="store_true", help="with set-context: make it the current one too")


def run(call: Call) -> int:
    """Show or change the contexts."""
    path = contexts.config_path(call.environment)
    if call.given.action != "view" and not call.given.name:
        raise UsageFault(f"config {call.given.action}: the name of a context expected")
    _ACTIONS[call.given.action](call, path)
    return DONE


def _view(call: Call, path: Path) -> None:
    known = contexts.read_contexts(path)
    chosen = (
        known.by_name if call.given.name is None else {call.given.name: _known(known.by_name, call.given.name, path)}
    )
    items = [_shown(name, context, path, is_current=name == known.current) for name, context in chosen.items()]
    if not items:
        call.note(f"{path} has no context; kubevnfm config set-context NAME --url URL makes one")
    else:
        show_list(call, items, items, _TABLE)


def _shown(name: str, context: contexts.Context, path: Path, *, is_current: bool) -> JsonObject:
    given = {key: getattr(context, key) for key in contexts.NAMES if getattr(context, key) not in (None, False)}
    return {
        "current": is_current,
        "name": name,
        **given,
        "url": _without_login(context.url),
        "authentication": _authentication(context),
        "file": str(path),
    }


def _without_login(url: str) -> str:
    """Return a URL with ``***`` for a login, which a file that others wrote may have."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "***"
    login, at_sign, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"***@{host}").geturl() if at_sign and login else url


def _authentication(context: contexts.Context) -> str:
    if context.cloud:
        return f"Keystone of cloud {context.cloud}"
    if context.auth_token_env:
        return f"Keystone token in {context.auth_token_env}"
    if context.token_file or context.token_env:
        return f"token in {context.token_file or context.token_env}"
    if context.user:
        return f"Basic, user {context.user}, password in {context.password_file or context.password_env or 'nothing'}"
    return "client certificate" if context.certificate else "none"


def _use(call: Call, path: Path) -> None:
    content = config_file.read_tables(path)
    _known(content.get("contexts", {}), call.given.name, path)
    config_file.write_tables(path, {**content, "current": call.given.name})
    call.note(f"the current context is {printable(call.given.name)}")


def _set(call: Call, path: Path) -> None:
    content = config_file.read_tables(path)
    tables: dict[str, Any] = dict(content.get("contexts", {}))
    name = call.given.name
    given = {"url": call.given.url, **{option: getattr(call.given, option) for option in _OPTIONS}}
    changed = {**tables.get(name, {}), **{key: value for key, value in given.items() if value is not None}}
    table = {key: value for key, value in changed.items() if value != ""}
    if call.given.insecure_skip_tls_verify:
        table[contexts.INSECURE] = True
    elif call.given.ca:
        table.pop(contexts.INSECURE, None)  # there is something to verify by again
    if "url" not in table:
        raise UsageFault(f"config set-context {name}: --url expected")
    # Refuses a URL that is none, or has a login.
    Gateway(table["url"], Authentication(replace(contexts.Context(), url=table["url"]), {}))
    is_first = not tables
    current = name if call.given.use or is_first else content.get("current")
    config_file.write_tables(path, {"current": current, "contexts": {**tables, name: table}})
    call.note(f"context {printable(name)} is written to {path}{'; it is the current one' if current == name else ''}")


def _delete(call: Call, path: Path) -> None:
    content = config_file.read_tables(path)
    tables: dict[str, Any] = dict(content.get("contexts", {}))
    _known(tables, call.given.name, path)
    del tables[call.given.name]
    current = content.get("current") if content.get("current") != call.given.name else None
    config_file.write_tables(path, {"current": current, "contexts": tables})
    call.note(f"context {printable(call.given.name)} is deleted{'' if current else '; no context is the current one'}")


def _known(tables: Mapping[str, Any], name: str, path: Path) -> Any:
    if name not in tables:
        raise UsageFault(f"{path} has no context {printable(name)}{did_you_mean(name, tables)}")
    return tables[name]


_ACTIONS: Final[Mapping[str, Callable[[Call, Path], None]]] = {
    "view": _view,
    "use-context": _use,
    "set-context": _set,
    "delete-context": _delete,
}
