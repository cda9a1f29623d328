"""The registry container's port: of the distribution API what a check of health, login and pull sees."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import bcrypt

REGISTRY_IMAGE = "registry"
_END_OF_HEAD = b"\r\n\r\n"
_HEAD_LIMIT = 16 * 1024
_REASONS = {200: "OK", 401: "Unauthorized", 404: "Not Found"}


@dataclass(frozen=True)
class RegistrySettings:
    """The part of a registry's configuration that clients notice."""

    tls: ssl.SSLContext | None = None
    knows: Callable[[str, str], bool] | None = None
    """Returns whether user and password are right; None: no login is asked for."""


def htpasswd(file: Path) -> Callable[[str, str], bool]:
    """Return the check of a file as Apache's htpasswd writes it, with bcrypt; the registry takes no other form."""
    lines = (line.partition(":") for line in file.read_text().splitlines())
    hash_by_user = {user: hashed for user, _, hashed in lines if hashed.startswith("$2")}

    def knows(user: str, password: str) -> bool:
        return user in hash_by_user and bcrypt.checkpw(password.encode(), hash_by_user[user].encode())

    return knows


class RegistryPort:
    """A listening socket: ``/v2/`` answers 200 and ``{}`` to a right login, every image is unknown."""

    def __init__(self, addresses: Sequence[str], port: int, settings: RegistrySettings | None = None) -> None:
        self._addresses, self._port = addresses, port
        self._settings = settings or RegistrySettings()
        self._servers: list[asyncio.Server] = []

    @property
    def port(self) -> int:
        """The port; a chosen one was given as 0."""
        port: int = self._servers[0].sockets[0].getsockname()[1]
        return port

    async def open(self) -> None:
        """Listen on every address of the machine; raise OSError when the port is taken."""
        try:
            for address in self._addresses:
                server = await asyncio.start_server(
                    self._answer_and_close,
                    address,
                    self._port,
                    limit=_HEAD_LIMIT,
                    ssl=self._settings.tls,
                    start_serving=False,
                )
                self._servers.append(server)
                await server.start_serving()
        except (OSError, asyncio.CancelledError):
            self.close()
            raise

    def close(self) -> None:
        """Stop listening."""
        for server in self._servers:
            server.close()
        self._servers.clear()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            first = await reader.readexactly(1)
            # A ClientHello of TLS: Go's server sees at once that it is no HTTP.
            if first == b"\x16":
                writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n400 Bad Request")
                await writer.drain()
                return
            head = (first + await reader.readuntil(_END_OF_HEAD)).decode("latin-1")
            status, body = self._status(head)
            challenge = 'Www-Authenticate: Basic realm="lab"\r\n' if status == 401 else ""
            answer = (
                f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
                f"Docker-Distribution-Api-Version: registry/2.0\r\n{challenge}Connection: close\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{'' if head.startswith('HEAD ') else body}"
            )
            writer.write(answer.encode())
            await writer.drain()

    async def _answer_and_close(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        finally:
            writer.close()

    def _status(self, head: str) -> tuple[int, str]:
        lines = head.split("\r\n")
        words = lines[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if not self._is_known(headers.get("authorization", "")):
            return 401, '{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}'
        if len(words) > 1 and words[1] in ("/v2/", "/v2"):
            return 200, "{}"
        return 404, '{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}'

    def _is_known(self, authorization: str) -> bool:
        knows = self._settings.knows
        if knows is None:
            return True
        try:
            user, _, password = (
                base64.b64decode(authorization.removeprefix("Basic "), validate=True).decode().partition(":")
            )
        except (binascii.Error, UnicodeDecodeError):
            return False
        return authorization.startswith("Basic ") and knows(user, password)
