"""Repositories of Helm charts over HTTP: which archive their index names for a chart (multicloud.md MC-048).

The archive itself is fetched as that of a registry is, by its digest (`packages.charts`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_clients.charts import ChartInRepository, PinnedChart
from kubevnfm_csar.oci_references import DIGEST_PATTERN
from kubevnfm_kit.errors import OutsideUnavailable, Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_one_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused
from kubevnfm_kit.printable import printable
from yarl import URL

from kubevnfm_lcm_api.packages.adapters.transfers import SourceFailed, Target, Transfers, is_final

_INDEX: Final = "index.yaml"
_LARGEST: Final = 16 * 2**20
"""Bytes of an index, as of any YAML that is read."""
_LONGEST_S: Final = 30.0
"""A caller waits for it."""
_LONGEST_URL: Final = 2048
_VERSION: Final = re.compile(
    r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?P<pre>-[0-9A-Za-z.-]{1,200})?(?:\+[0-9A-Za-z.-]{1,200})?"
)


@dataclass(frozen=True)
class HttpChartRepositories:
    """`kubevnfm_clients.charts.ChartRepositories` over a session that checks its addresses."""

    transfers: Transfers
    hosts: frozenset[str] = field(default_factory=frozenset)
    """Those that redirects, and the addresses of archives, may lead to beside that of the repository."""

    _reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1), compare=False)
    """One index at a time: the largest one takes seconds of processor time."""

    async def find(self, wanted: Sequence[ChartInRepository]) -> Sequence[PinnedChart]:
        by_address: dict[URL, dict[int, ChartInRepository]] = {}
        for number, each in enumerate(wanted):
            by_address.setdefault(_address(each), {})[number] = each
        found: dict[int, PinnedChart] = {}
        try:
            async with asyncio.timeout(_LONGEST_S):
                for base, mine in by_address.items():
                    entries = await self._entries(base, next(iter(mine.values())).place)
                    found |= {number: self._pinned(base, entries, each) for number, each in mine.items()}
        except TimeoutError:
            named = ", ".join(str(base / _INDEX) for base in by_address)
            raise OutsideUnavailable(f"{named}: it took longer than {_LONGEST_S:g} s"[:_LONGEST_URL]) from None
        return [found[number] for number in range(len(wanted))]

    async def _entries(self, base: URL, place: str) -> Mapping[str, Any]:
        """Return the charts of a repository. Raises Unprocessable, OutsideUnavailable."""
        index = self._target(base)
        try:
            text = await self._text(index)
            async with self._reading:
                return await asyncio.to_thread(_read, text)
        except SourceFailed as error:
            if error.is_final:
                raise Unprocessable(place, str(error)) from error
            raise OutsideUnavailable(str(error)) from error
        except ValueError as error:
            raise Unprocessable(place, f"{index.uri}: {error}") from None

    def _target(self, base: URL) -> Target:
        return Target(base / _INDEX, None, {"Accept": "application/yaml, text/yaml, */*;q=0.5"}, self.hosts)

    def _pinned(self, base: URL, entries: Mapping[str, Any], wanted: ChartInRepository) -> PinnedChart:
        """Raises Unprocessable for a chart that the repository lacks, or at an address that is not followed."""
        index = self._target(base)
        try:
            found = _listed(entries, wanted.chart, wanted.version)
            url = base.with_path(f"{base.path.rstrip('/')}/").join(URL(found.url))
        except ValueError as error:
            raise Unprocessable(wanted.place, f"{index.uri}: {error}") from None
        chart, is_safe = wanted.chart[:100], url.scheme == "https" or url.scheme == base.scheme
        if url.scheme not in ("http", "https") or not is_safe or url.user is not None or len(str(url)) > _LONGEST_URL:
            raise Unprocessable(wanted.place, f"{index.uri}: the address of {chart} is one that is not followed")
        if url.query_string:
            # It is shown with the instance, and what is signed there ends some day.
            raise Unprocessable(wanted.place, f"{index.uri}: the address of {chart} has a query, which may be a secret")
        if not index.admits(url):
            reason = f"the archive of {chart} is on {url.host}, which is not allowed (setting artifact_hosts)"
            raise Unprocessable(wanted.place, f"{index.uri}: {reason}")
        return PinnedChart(str(url), found.version, found.digest)

    async def _text(self, index: Target) -> str:
        """Return the index. Raises SourceFailed; ValueError for text that is not UTF-8."""
        response, raw = await self.transfers.body(index, limit_bytes=_LARGEST)
        if response.status != 200:
            said = f"it answered {response.status}, 200 expected"
            raise SourceFailed(index.uri, said, is_final=is_final(response.status))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise ValueError("UTF-8 text expected") from None


def _address(wanted: ChartInRepository) -> URL:
    given = wanted.repository
    try:
        url = URL(given)
    except ValueError:
        url = URL()
    is_plain = url.user is None and not url.query_string and not url.fragment
    if url.scheme not in ("http", "https") or not url.host or not is_plain or len(given) > _LONGEST_URL:
        raise Unprocessable(wanted.place, "an http(s) address without credentials, query and fragment expected")
    return url


def _read(text: str) -> Mapping[str, Any]:
    """Return the entries of an index. Raises ValueError."""
    try:
        body = read_one_kubernetes_yaml(text)
    except YamlRefused as error:
        raise ValueError(f"invalid YAML: {error}") from None
    entries = body.get("entries") if isinstance(body, Mapping) else None
    if not isinstance(entries, Mapping):
        raise ValueError("an index of charts expected")
    return entries


def _listed(entries: Mapping[str, Any], chart: str, version: str | None) -> PinnedChart:
    """Return the chart that an index lists, with its address as it is there. Raises ValueError."""
    listed = entries.get(chart)
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise ValueError(f"the repository has no chart {chart[:100]}")
    known = [each for each in listed if isinstance(each, Mapping) and isinstance(each.get("version"), str)]
    if version is None:
        ranked = [(order, each) for each in known if (order := _rank(each["version"])) is not None]
        chosen = max(ranked, key=lambda one: one[0], default=(None, None))[1]
    else:
        chosen = next((each for each in known if each["version"] == version), None)
    if chosen is None:
        wanted = f"version {version[:100]}" if version is not None else "version that is no pre-release"
        raise ValueError(f"the repository has no {wanted} of chart {chart[:100]}")
    return _entry(chosen, chart)


def _entry(entry: Mapping[str, Any], chart: str) -> PinnedChart:
    urls, digest, version = entry.get("urls"), entry.get("digest"), printable(entry["version"])[:100]
    address = next((each for each in urls if isinstance(each, str)), None) if isinstance(urls, list) else None
    if address is None:
        raise ValueError(f"chart {chart[:100]} {version} has no address")
    given = f"sha256:{digest.removeprefix('sha256:')}" if isinstance(digest, str) else ""
    if not re.fullmatch(DIGEST_PATTERN, given):
        raise ValueError(f"chart {chart[:100]} {version} has no SHA-256 digest, by which it would be pinned")
    return PinnedChart(address, version, given)


def _rank(version: str) -> tuple[int, ...] | None:
    """Return what orders released versions; None for a pre-release and for another text."""
    found = _VERSION.fullmatch(version)
    if found is None or found["pre"] is not None:
        return None
    return tuple(int(part or 0) for part in found.groups()[:3])
