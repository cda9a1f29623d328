"""Repositories of Helm charts over HTTP: which archive their index names for a chart (multicloud.md MC-048).

The archive itself is fetched as that of a registry is, by its digest (`packages.charts`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubevnfm_clients.charts import PinnedChart
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

    async def find(self, repository: str, chart: str, version: str | None, *, place: str) -> PinnedChart:
        base = _address(repository, place)
        index = Target(base / _INDEX, None, {"Accept": "application/yaml, text/yaml, */*;q=0.5"}, self.hosts)
        try:
            async with asyncio.timeout(_LONGEST_S):
                text = await self._text(index)
            found = await asyncio.to_thread(_listed, text, chart, version)
            url = base.with_path(f"{base.path.rstrip('/')}/").join(URL(found.url))
        except TimeoutError:
            raise OutsideUnavailable(f"{index.uri}: it took longer than {_LONGEST_S:g} s") from None
        except SourceFailed as error:
            if error.is_final:
                raise Unprocessable(place, str(error)) from error
            raise OutsideUnavailable(str(error)) from error
        except ValueError as error:
            raise Unprocessable(place, f"{index.uri}: {error}") from None
        is_safe = url.scheme == "https" or url.scheme == base.scheme
        if url.scheme not in ("http", "https") or not is_safe or url.user is not None or len(str(url)) > _LONGEST_URL:
            raise Unprocessable(place, f"{index.uri}: the address of {chart} is one that is not followed")
        if not index.admits(url):
            reason = f"the archive of {chart} is on {url.host}, which is not allowed (setting artifact_hosts)"
            raise Unprocessable(place, f"{index.uri}: {reason}")
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


def _address(repository: str, place: str) -> URL:
    try:
        url = URL(repository)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host or url.user is not None or len(repository) > _LONGEST_URL:
        raise Unprocessable(place, "an http(s) address without credentials expected")
    return url.with_query(None).with_fragment(None)


def _listed(text: str, chart: str, version: str | None) -> PinnedChart:
    """Return the chart that an index lists, with its address as it is there. Raises ValueError."""
    try:
        body = read_one_kubernetes_yaml(text)
    except YamlRefused as error:
        raise ValueError(f"invalid YAML: {error}") from None
    entries = body.get("entries") if isinstance(body, Mapping) else None
    if not isinstance(entries, Mapping):
        raise ValueError("an index of charts expected")
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
    return _pinned(chosen, chart)


def _pinned(entry: Mapping[str, Any], chart: str) -> PinnedChart:
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
