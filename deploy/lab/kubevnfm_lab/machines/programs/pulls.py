"""ctr: the resolver of containerd, which reads hosts.toml and looks for an image's manifest.

Texts and order are those of ctr 1.6.20 in front of the distribution's registry 2.8.2.
"""

from __future__ import annotations

import json
import ssl
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from kubevnfm_lab.machines.names import resolved
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Program, options

WITH_VALUE = ("--hosts-dir", "-n", "--namespace", "-u", "--user", "-a", "--address")
MANIFESTS = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.index.v1+json, */*"


@dataclass(frozen=True)
class _Host:
    url: str
    authority: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


async def ctr(call: Call) -> Exit:
    """Ctr content fetch-object; it needs no daemon."""
    given = options(call.args, with_value=WITH_VALUE)
    if given.words[:2] != ["content", "fetch-object"] or len(given.words) < 3:
        raise Failed(f"No help topic for '{' '.join(given.words)}'")
    image = given.words[2]
    server, _, path = image.partition("/")
    name, _, tag = path.rpartition(":")
    folder = given.get("--hosts-dir")
    host, logged = _host(call, call.path(folder), server) if folder else (_Host(_usual(server)), "")
    request = f"{host.url}/v2/{name}/manifests/{tag}"
    try:
        status = await _head(call, request, host)
    except aiohttp.ClientConnectorCertificateError as error:
        raise Failed(f'{logged}ctr: failed to do request: Head "{request}": {_x509(error, server)}') from error
    except aiohttp.ClientConnectorDNSError as error:
        lookup = f"dial tcp: lookup {error.host} on 127.0.0.53:53: no such host"
        raise Failed(f'{logged}ctr: failed to do request: Head "{request}": {lookup}') from error
    except aiohttp.ClientSSLError as error:
        reason = "http: server gave HTTP response to HTTPS client"
        raise Failed(f'{logged}ctr: failed to do request: Head "{request}": {reason}') from error
    except (aiohttp.ClientError, TimeoutError) as error:
        reason = f"dial tcp {server}: connect: connection refused"
        raise Failed(f'{logged}ctr: failed to do request: Head "{request}": {reason}') from error
    if status == 404:
        raise Failed(f"{logged}ctr: {image}: not found")
    if status != 200:
        text = "401 Unauthorized" if status == 401 else str(status)
        raise Failed(f"{logged}ctr: pulling from host {server} failed with status code [manifests {tag}]: {text}")
    return Exit()


def _usual(server: str) -> str:
    """Return the URL of a server without hosts.toml: HTTPS unless it is this machine."""
    host = server.partition(":")[0]
    return f"{'http' if host == 'localhost' or host.startswith('127.') else 'https'}://{server}"


def _host(call: Call, folder: Path, server: str) -> tuple[_Host, str]:
    """Return how a server is reached, and what is logged about it."""
    files = (folder / name / "hosts.toml" for name in (server, "_default"))
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return _Host(_usual(server)), ""
    try:
        read: dict[str, Any] = tomllib.loads(file.read_text())
        problem = "" if isinstance(read.get("host"), dict) else "invalid `host` tree"
    except tomllib.TOMLDecodeError as error:
        read, problem = {}, str(error)
    if problem:
        return _Host(_usual(server)), f'level=error msg="failed to decode hosts.toml" error={json.dumps(problem)}\n'
    authority = call.path(read["ca"]) if "ca" in read else None
    if authority is not None and not _is_certificate(authority):
        raise Failed(f'ctr: unable to load CA cert "{read["ca"]}"')
    headers = {name: value[0] if isinstance(value, list) else value for name, value in read.get("header", {}).items()}
    return _Host(read.get("server", _usual(server)), authority, headers), ""


def _is_certificate(file: Path) -> bool:
    try:
        ssl.create_default_context(cafile=str(file))
    except (ssl.SSLError, OSError):
        return False
    return True


async def _head(call: Call, url: str, host: _Host) -> int:
    name, netloc = urlsplit(url).hostname or "", urlsplit(url).netloc
    there = url.replace(name, resolved(call.machine.root, name), 1)
    trust = _trusting(host.authority) if host.authority is not None else _trusting_the_usual()
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session,
        session.head(
            there,
            headers={"Accept": MANIFESTS, "Host": netloc, **host.headers},
            ssl=trust,
            server_hostname=name if url.startswith("https") else None,
        ) as response,
    ):
        return response.status


def _trusting(authority: Path | None) -> ssl.SSLContext:
    trust = ssl.create_default_context(cafile=str(authority) if authority is not None else None)
    # Go's TLS knows no names but subject alternative ones.
    trust.hostname_checks_common_name = False
    return trust


@cache
def _trusting_the_usual() -> ssl.SSLContext:
    """Return one context for all pulls: to read the authorities of this machine takes 20 ms."""
    return _trusting(None)


def _x509(error: aiohttp.ClientConnectorCertificateError, server: str) -> str:
    """Return Go's text for the refusal of a certificate."""
    cause, host = error.certificate_error, server.partition(":")[0]
    # X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
    if getattr(cause, "verify_code", 0) in (62, 64):
        try:
            ip_address(host)
        except ValueError:
            return f"x509: certificate is not valid for any names, but wanted to match {host}"
        return f"x509: cannot validate certificate for {host} because it doesn't contain any IP SANs"
    return "x509: certificate signed by unknown authority"


PROGRAMS: Mapping[str, Program] = {"ctr": ctr}
