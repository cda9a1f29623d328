"""How a request authenticates: by token, Basic, client certificate, or a token of Keystone."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from kubevnfm_cli import contexts
from kubevnfm_cli.contexts import Context
from kubevnfm_cli.faults import NOT_ALLOWED, Fault, Unreachable, UsageFault
from kubevnfm_cli.json_types import part

if TYPE_CHECKING:
    from kubevnfm_proxies.rule import Proxy

_PROXIES: Final = frozenset({"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"})
_KEYSTONE_S: Final = 30.0
_MOST_BYTES: Final = 4 << 20


class KeystoneRefused(Fault):
    """Keystone gives no token."""

    code = NOT_ALLOWED


def tls_of(context: Context) -> ssl.SSLContext | None:
    """Return what TLS needs for a gateway; None for plain HTTP. Raises UsageFault."""
    if not context.url.startswith("https:"):
        return None
    made = _tls(context.ca, context.certificate, context.key)
    if context.insecure_skip_tls_verify:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def _tls(ca: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    try:
        made = ssl.create_default_context(cafile=ca)
        if certificate:
            made.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # no such file, or not PEM
        names = ", ".join(name for name in (ca, certificate, key) if name)
        raise UsageFault(f"{names}: certificates and a key in PEM form expected: {error}") from error
    return made


def proxy_of(context: Context, environment: Mapping[str, str]) -> Proxy | None:
    """Return the proxy to a gateway; None: none. Raises UsageFault."""
    if context.proxy is None and not environment.keys() & _PROXIES:
        return None
    from kubevnfm_cli import proxies

    login = None
    if context.proxy_user is not None:
        login = f"{context.proxy_user}:{contexts.secret(context, 'proxy_password', environment) or ''}"
    return proxies.proxy_of(context.url, named=context.proxy, login=login, environment=environment)


class Authentication:
    """The credentials of a context, read when they are first needed."""

    def __init__(self, context: Context, environment: Mapping[str, str] = os.environ) -> None:
        self._context = context
        self._environment = environment
        self._headers: Mapping[str, str] | None = None

    def headers(self) -> Mapping[str, str]:
        """Return the headers of a request. Raises UsageFault, KeystoneRefused, Unreachable."""
        if self._headers is None:
            self._headers = self._read()
        return self._headers

    def renew(self) -> bool:
        """Read the credentials again: a file may have a new token, Keystone gives one."""
        old = self._headers
        self._headers = self._read()
        return old is not None and self._headers != old

    def _read(self) -> Mapping[str, str]:
        context, environment = self._context, self._environment
        if context.cloud:
            cloud = _cloud(context.cloud, context.clouds_file, environment)
            return {"X-Auth-Token": keystone_token(cloud, context.cloud, environment)}
        auth_token = contexts.secret(context, "auth_token", environment)
        if auth_token:
            return {"X-Auth-Token": _one_line(auth_token)}
        token = contexts.secret(context, "token", environment)
        if token:
            return {"Authorization": f"Bearer {_one_line(token)}"}
        if context.user is None:
            return {}
        password = contexts.secret(context, "password", environment) or ""
        pair = base64.b64encode(f"{context.user}:{password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}


def _one_line(token: str) -> str:
    """Return a token that a header can have. Raises UsageFault, which does not show it."""
    if not token.isascii() or not token.isprintable():
        raise UsageFault("the token has characters that no header can have")
    return token


def _cloud(name: str, file: str | None, environment: Mapping[str, str]) -> Mapping[str, Any]:
    """Return an entry of clouds.yaml. Raises Fault."""
    from kubevnfm_cli.yaml_text import read_documents

    path = _clouds_file(file, environment)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageFault(f"{path}: {error}") from error
    read = read_documents(text, str(path))
    cloud = part(read[0] if read else None, "clouds", name)
    if not isinstance(cloud, dict) or not isinstance(cloud.get("auth"), dict):
        raise UsageFault(f"{path}: cloud {name} with auth expected")
    return cloud


def _clouds_file(file: str | None, environment: Mapping[str, str]) -> Path:
    named = file or environment.get("OS_CLIENT_CONFIG_FILE")
    if named:
        return Path(named)
    home = Path(environment.get("HOME") or "~").expanduser()
    places = [Path(), home / ".config" / "openstack", Path("/etc/openstack")]
    found = [path for folder in places for path in (folder / "clouds.yaml", folder / "clouds.yml") if path.exists()]
    if not found:
        raise UsageFault(
            "clouds.yaml is not in ., ~/.config/openstack or /etc/openstack; OS_CLIENT_CONFIG_FILE names it"
        )
    return found[0]


def keystone_token(cloud: Mapping[str, Any], name: str, environment: Mapping[str, str]) -> str:
    """Return a token that Keystone (Identity v3) gives for the password, application credential or token of a cloud.

    Raises UsageFault, KeystoneRefused, Unreachable.
    """
    auth = {key: str(value) for key, value in cloud["auth"].items() if value is not None}
    if "auth_url" not in auth:
        raise UsageFault(f"cloud {name}: auth_url expected")
    url = auth["auth_url"].rstrip("/")
    url = url if url.endswith("/v3") else f"{url.removesuffix('/v2.0')}/v3"
    status, headers, text = _posted(f"{url}/auth/tokens", {"auth": _identity(auth, name)}, cloud, environment)
    token = headers.get("X-Subject-Token")
    if status != 201 or not token:
        raise KeystoneRefused(f"Keystone of cloud {name} gives no token: {status}: {text}")
    return _one_line(token)


def _identity(auth: Mapping[str, str], name: str) -> dict[str, Any]:
    if "application_credential_secret" in auth:
        known = {"secret": auth["application_credential_secret"]}
        if "application_credential_id" in auth:
            known["id"] = auth["application_credential_id"]
            return {"identity": {"methods": ["application_credential"], "application_credential": known}}
        named = {**known, "name": auth.get("application_credential_name", ""), "user": _user(auth)}
        return {"identity": {"methods": ["application_credential"], "application_credential": named}}
    if "password" not in auth:
        raise UsageFault(f"cloud {name}: password or application_credential_secret expected")
    user = {**_user(auth), "password": auth["password"]}
    return {"identity": {"methods": ["password"], "password": {"user": user}}, **_scope(auth)}


def _user(auth: Mapping[str, str]) -> dict[str, Any]:
    if "user_id" in auth:
        return {"id": auth["user_id"]}
    return {"name": auth.get("username", ""), "domain": _domain(auth, "user")}


def _scope(auth: Mapping[str, str]) -> dict[str, Any]:
    project = auth.get("project_id") or auth.get("tenant_id")
    if project:
        return {"scope": {"project": {"id": project}}}
    named = auth.get("project_name") or auth.get("tenant_name")
    if named:
        return {"scope": {"project": {"name": named, "domain": _domain(auth, "project")}}}
    return {}


def _domain(auth: Mapping[str, str], kind: str) -> dict[str, str]:
    for prefix in (f"{kind}_domain", "domain"):
        if f"{prefix}_id" in auth:
            return {"id": auth[f"{prefix}_id"]}
        if f"{prefix}_name" in auth:
            return {"name": auth[f"{prefix}_name"]}
    return {"id": auth.get("default_domain", "default")}


def _posted(
    url: str, body: object, cloud: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[int, http.client.HTTPMessage, str]:
    parts = urlsplit(url)
    if parts.hostname is None or parts.scheme not in ("http", "https"):
        raise UsageFault(f"auth_url {url}: http or https expected")
    tls = None
    if parts.scheme == "https":
        tls = _tls(cloud.get("cacert"), cloud.get("cert"), cloud.get("key"))
        if cloud.get("verify") is False:
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    from kubevnfm_cli import proxies

    proxy = proxies.proxy_of(url, named=None, login=None, environment=environment)
    headers = {"Content-Type": "application/json", **(proxy.headers if proxy is not None and tls is None else {})}
    target = parts.path if proxy is None or tls is not None else url
    connection = None
    try:
        connection = proxies.connected(parts.hostname, parts.port, _KEYSTONE_S, tls=tls, proxy=proxy)
        connection.request("POST", target, json.dumps(body).encode(), headers)
        response = connection.getresponse()
        content = response.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"Keystone at {url}: {error}") from error
    finally:
        if connection is not None:
            connection.close()
    try:
        text = part(json.loads(content), "error", "message")
    except (ValueError, RecursionError):
        text = None
    return response.status, response.headers, str(text or response.reason)
