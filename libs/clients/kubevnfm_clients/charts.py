"""Helm charts (multicloud.md MC-048): whether they can be rendered, which infra-k8s knows, and those that lcm-api has fetched."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

import aiohttp
from kubevnfm_kit.errors import NotFound, Unprocessable
from kubevnfm_kit.files import private_folder
from kubevnfm_kit.ids import new_id
from pydantic import BaseModel, ConfigDict

from kubevnfm_clients.cache_folder import CHARTS, GIB, UNFINISHED, CacheFolder
from kubevnfm_clients.http import InternalApi
from kubevnfm_clients.multicloud.errors import ChartNotFetched, ChartUnavailable

_LOOK_S: Final = 0.5


class HelmMissing(Unprocessable, code="helm-missing", title="Helm chart not rendered"):
    """The package is a Helm chart, and this installation has no helm program."""


class ChartPrograms(Protocol):
    """Served by infra-k8s: ``/internal/v1/chart-program``. May raise OutsideUnavailable."""

    async def why_missing(self) -> str:
        """Return why no chart can be rendered; "" if the program is there."""
        ...


class HttpChartPrograms:
    """`ChartPrograms` over HTTP."""

    def __init__(self, base_url: str, token: str, session: aiohttp.ClientSession) -> None:
        self._api = InternalApi("infra-k8s", base_url, token, session)

    async def why_missing(self) -> str:
        return str((await self._api.call("GET", "chart-program"))["whyMissing"])


@dataclass(frozen=True)
class PinnedChart:
    """A Helm chart of a repository."""

    url: str
    """The address of its archive."""
    version: str
    digest: str
    """``sha256:`` and the hexadecimal digest of the archive."""


@dataclass(frozen=True)
class ChartInRepository:
    """A Helm chart as a request names it."""

    repository: str
    chart: str
    version: str | None
    """None: the newest one that is no pre-release."""
    place: str
    """Where the request names the repository."""


class ChartRepositories(Protocol):
    """Repositories of Helm charts that requests name."""

    async def find(self, wanted: Sequence[ChartInRepository]) -> Sequence[PinnedChart]:
        """Return the charts of a request that the indexes of their repositories list; each index is read once.

        Raises: Unprocessable at the place of a chart; OutsideUnavailable if a repeat may help.
        """
        ...


class ChartWanted(BaseModel):
    """A chart that is to be held."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    oci: str
    """``oci://<host>/<repository>``, or the URL of an archive."""
    digest: str
    """The digest of its manifest, or of the archive."""
    package_id: str
    """The package whose order names it. While instances of it exist, the chart is not removed."""


class ChartState(BaseModel):
    """How far the fetch of a chart is."""

    model_config = ConfigDict(frozen=True)

    state: Literal["FETCHING", "READY", "FAILED"]
    oci: str
    """Where it is, or was, fetched from."""
    sha256: str | None = None
    """That of the archive, once it is READY."""
    done_bytes: int | None = None
    total_bytes: int | None = None
    failure: str | None = None
    is_final: bool = False
    """Whether another fetch would fail for the same reason."""


class FetchedCharts(Protocol):
    """Served by lcm-api: ``/internal/v1/charts/{id}``."""

    async def archive(self, wanted: ChartWanted) -> Path:
        """Return the archive of a chart, once it was fetched, after a wait of some seconds.

        Raises ChartNotFetched; ChartUnavailable, or another OutsideUnavailable, if a repeat may help.
        """
        ...


class HttpFetchedCharts:
    """`FetchedCharts` over HTTP, with copies in a cache folder that may be emptied at any time."""

    def __init__(
        self,
        base_url: str,
        token: str,
        session: aiohttp.ClientSession,
        *,
        cache_dir: Path,
        cache_gib: float = 20.0,
        wait_s: float = 15.0,
    ) -> None:
        self._api = InternalApi("lcm-api", base_url, token, session)
        self._folder, self._wait_s = cache_dir / CHARTS, wait_s
        self._cache = CacheFolder(cache_dir, int(cache_gib * GIB))

    async def archive(self, wanted: ChartWanted) -> Path:
        chart_id = wanted.digest.rpartition(":")[2]
        # Also if a copy is here: lcm-api knows by this that the chart is used.
        state = await self._fetched(chart_id, wanted)
        path = self._folder / f"{chart_id}.tgz"
        await asyncio.to_thread(self._cache.use, path)
        # Each time, because the cache is a folder that others could write to.
        if await asyncio.to_thread(_digest, path) != state.sha256:
            await self._download(chart_id, path)
            if await asyncio.to_thread(_digest, path) != state.sha256:
                raise ChartUnavailable(
                    f"chart {wanted.oci}: the copy has another digest than the chart that was fetched"
                )
            await asyncio.to_thread(self._cache.make_room)
        return path

    async def _fetched(self, chart_id: str, wanted: ChartWanted) -> ChartState:
        """Return the state of a chart that is READY."""
        answer = await self._api.call("PUT", "charts", chart_id, body=wanted.model_dump())
        looks = int(self._wait_s / _LOOK_S)
        for look in range(looks + 1):
            state = ChartState.model_validate(answer)
            if state.state == "READY":
                return state
            # Others may name another place for the same chart, whose failure says nothing about this one.
            if state.state == "FAILED" and state.oci == wanted.oci:
                failed = ChartNotFetched if state.is_final else ChartUnavailable
                raise failed(f"chart {wanted.oci}: {state.failure}")
            if look < looks:
                await asyncio.sleep(_LOOK_S)
                answer = await self._looked_at(chart_id, wanted, state)
        total = "" if state.total_bytes is None else f" of {state.total_bytes}"
        raise ChartUnavailable(
            f"chart {wanted.oci} is being fetched: {state.done_bytes or 0}{total} bytes have arrived"
        )

    async def _looked_at(self, chart_id: str, wanted: ChartWanted, last: ChartState) -> object:
        """Return how far the fetch is; begin one if there is none any more, or if that from another place has failed."""
        if last.state == "FETCHING":
            with suppress(NotFound):  # removed at the same time, to make room
                return await self._api.call("GET", "charts", chart_id)
        return await self._api.call("PUT", "charts", chart_id, body=wanted.model_dump())

    async def _download(self, chart_id: str, path: Path) -> None:
        await asyncio.to_thread(private_folder, self._folder)
        part = self._folder / f"{UNFINISHED}{new_id()}"
        try:
            with await asyncio.to_thread(part.open, "wb") as file:
                async for chunk in self._api.stream("charts", chart_id, "archive"):
                    await asyncio.to_thread(file.write, chunk)
            await asyncio.to_thread(part.replace, path)
        except NotFound as error:
            raise ChartUnavailable(f"chart {chart_id} was removed, and is fetched again") from error
        finally:
            await asyncio.to_thread(part.unlink, missing_ok=True)


def _digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if it is not there."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
