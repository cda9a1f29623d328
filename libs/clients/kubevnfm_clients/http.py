"""Calls of another service's internal API; its ProblemDetails become our errors again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
from kubevnfm_kit.errors import (
    BeingRemoved,
    Conflict,
    ConflictingInput,
    InUse,
    InvalidInput,
    NotFound,
    OutsideUnavailable,
    PreconditionFailed,
    TimedOut,
    Unprocessable,
    VnfmError,
)
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_clients.multicloud.errors import (
    ChartNotFetched,
    ChartRefused,
    ChartUnavailable,
    RegionLacks,
    RegionUnavailable,
    ResourceMetricsUnavailable,
    Suspended,
    UnknownKind,
)
from kubevnfm_clients.paths import quoted

_TOTAL_S: Final = 60.0
_CONNECT_S: Final = 5.0
# A package can be some GiB, so its transfer has no total limit; the time between two reads is bounded.
_STREAM_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=60.0)


class ServiceUnavailable(OutsideUnavailable, code="service-unavailable", title="Service unavailable"):
    """Another of our services does not answer."""


class InternalApi:
    """The internal API of one service.

    A path is given as its segments, each in clear. An id with ``/``, ``?`` or ``#`` in it stays one segment.
    """

    def __init__(self, service: str, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._service, self._base_url, self._session = service, base_url.rstrip("/"), session
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    async def call(
        self, method: str, *path: str, body: object = None, query: JsonMapping | None = None, wait_s: float = 0.0
    ) -> Any:
        """Return the answer's JSON, None for an empty one. ``wait_s``: how long the service may wait before it answers.

        Raises: the service's error; ServiceUnavailable; NotFound for a segment that no resource can have.
        """
        timeout = aiohttp.ClientTimeout(total=_TOTAL_S + wait_s, sock_connect=_CONNECT_S)
        async with self._answer(method, path, body, query, timeout) as response:
            raw = await response.read()
        try:
            return read_foreign(raw) if raw else None
        except ValueError as error:
            # A proxy in between may answer with a page of its own.
            raise ServiceUnavailable(f"{self._service} did not answer with JSON") from error

    async def stream(self, *path: str, query: JsonMapping | None = None) -> AsyncIterator[bytes]:
        """Yield the answer's body in chunks. Raises as ``call``."""
        async with self._answer("GET", path, None, query, _STREAM_TIMEOUT) as response:
            async for chunk in response.content.iter_chunked(256 * 1024):
                yield chunk

    @asynccontextmanager
    async def _answer(
        self, method: str, path: Sequence[str], body: object, query: JsonMapping | None, timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            resource = quoted(*path)
        except ValueError as error:
            raise NotFound(f"{self._service}: {error}") from error
        try:
            async with self._session.request(
                method,
                f"{self._base_url}/internal/v1/{resource}",
                json=body,
                params=query,
                headers=self._headers,
                timeout=timeout,
            ) as response:
                if response.status >= 400:
                    raise _error_of(self._service, response.status, await response.text())
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ServiceUnavailable(f"{self._service} does not answer ({type(error).__name__})") from error


class OtherServiceError(VnfmError):
    """An error of another service that has no class of its own here."""

    def __init__(self, detail: str, *, status: int) -> None:
        super().__init__(detail)
        self.status = status  # type: ignore[misc]  # of this one error, not of the class


_MISTAKES: Final[Mapping[int, type[InvalidInput]]] = {400: InvalidInput, 422: Unprocessable}
_BY_CODE: Final[Mapping[str, type[VnfmError]]] = {
    one.code: one
    for one in (
        BeingRemoved,
        ChartNotFetched,
        ChartRefused,
        ChartUnavailable,
        PreconditionFailed,
        RegionUnavailable,
        ResourceMetricsUnavailable,
        Suspended,
    )
}
_MISTAKES_BY_CODE: Final[Mapping[str, type[InvalidInput]]] = {
    one.code: one for one in (ConflictingInput, RegionLacks, UnknownKind)
}


def _error_of(service: str, status: int, text: str) -> VnfmError:
    try:
        problem = read_foreign(text)
    except ValueError:
        problem = {}
    # A proxy in between may answer with a page or JSON of its own.
    if not isinstance(problem, dict):
        problem = {}
    detail = str(problem.get("detail") or f"{service} answered {status}")
    code = str(problem.get("type"))
    if code in _BY_CODE:
        return _BY_CODE[code](detail)
    # A conflict has places only if the input is the reason.
    if status in _MISTAKES or (code == ConflictingInput.code and problem.get("invalidParams")):
        named = problem.get("invalidParams") or [{}]
        (field, reason), *more = ((str(one.get("name", "")), str(one.get("reason", detail))) for one in named)
        return _MISTAKES_BY_CODE.get(code, _MISTAKES.get(status, InvalidInput))(field, reason, *more)
    if code == InUse.code:
        return InUse(detail, [str(each) for each in problem.get("holders", [])], problem.get("holder_count"))
    plain: dict[int, type[VnfmError]] = {404: NotFound, 409: Conflict, 503: ServiceUnavailable, 504: TimedOut}
    return plain[status](detail) if status in plain else OtherServiceError(detail, status=status)
