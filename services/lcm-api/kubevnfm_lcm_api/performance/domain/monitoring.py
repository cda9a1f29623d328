"""``metadata.monitoring`` of requests, as users of Tacker have it: which Prometheus measures. Pure.

Tacker writes rule files to that host by SFTP; kubevnfm asks its HTTP API instead. So the parts for writing are not needed, and
credentials in them are not stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.nearest import no_such
from kubevnfm_kit.service_urls import read_service_url
from kubevnfm_secrets import mask, without_secrets

_LONGEST: Final = 16_384
_MOST_TARGETS: Final = 10
_PLACE: Final = "metadata/monitoring"
_PLAIN: Final = {"monitorName": "prometheus", "driverType": "external"}
_TARGETS: Final = "targetsInfo"
_URL, _RELOAD, _LOGIN = "prometheusUrl", "prometheusReloadApiEndpoint", "authInfo"
_UNUSED: Final = ("prometheusHost", "prometheusHostPort", _LOGIN, "alertRuleConfigPath")
WARNINGS: Final = "kubevnfm_warnings"
"""The attribute of the shown metadata that names what of them is not used."""
LAST_ERROR: Final = "kubevnfm_last_error"
"""The attribute of the shown metadata that says why the last values are missing."""


@dataclass(frozen=True)
class Monitoring:
    """The metadata of a request, as they are used."""

    metadata: JsonObject
    """To store and show: without credentials."""
    own_urls: tuple[str, ...] = ()
    """The Prometheus that the request names as such (``prometheusUrl``)."""
    reload_urls: tuple[str, ...] = ()
    """Those whose reload endpoints it names, as bodies for Tacker do: their APIs have the same address."""

    @property
    def is_given(self) -> bool:
        """Whether the request says that it is monitored from outside."""
        return "monitoring" in self.metadata


def read_monitoring(metadata: Mapping[str, Any] | None) -> Monitoring:
    """Read the metadata of a request, whose secrets are hidden. Raises InvalidInput that names a wrong part."""
    if not metadata:
        return Monitoring({})
    if len(json.dumps(mask(metadata))) > _LONGEST:
        raise InvalidInput("metadata", f"at most {_LONGEST} bytes expected")
    for name in (WARNINGS, LAST_ERROR):
        if name in metadata:
            raise InvalidInput(f"metadata/{name}", "this name is reserved for answers")
    stored: JsonObject = without_secrets(metadata)
    if "monitoring" not in metadata:
        return Monitoring(stored)
    given = metadata["monitoring"]
    targets = _targets(given)
    stored["monitoring"] = {**stored["monitoring"]}
    if _TARGETS in given:
        stored["monitoring"][_TARGETS] = [
            {name: value for name, value in without_secrets(each).items() if name != _LOGIN} for each in targets
        ]
    if warnings := list(_warnings(targets)):
        stored[WARNINGS] = warnings
    own = [_root(each[_URL], index, _URL) for index, each in enumerate(targets) if _URL in each]
    reload = [_root(each[_RELOAD], index, _RELOAD) for index, each in enumerate(targets) if _RELOAD in each]
    return Monitoring(stored, tuple(dict.fromkeys(own)), tuple(dict.fromkeys(reload)))


def _targets(given: Any) -> list[JsonMapping]:
    if not isinstance(given, Mapping):
        raise InvalidInput(_PLACE, "an object expected")
    for name in given:
        if name not in _PLAIN and name != _TARGETS:
            raise InvalidInput(f"{_PLACE}/{name[:100]}", no_such(name, [*_PLAIN, _TARGETS]))
    for name, expected in _PLAIN.items():
        if given.get(name) != expected:
            raise InvalidInput(f"{_PLACE}/{name}", f"{expected} expected")
    targets = given.get(_TARGETS, [])
    if not isinstance(targets, list) or len(targets) > _MOST_TARGETS:
        raise InvalidInput(f"{_PLACE}/{_TARGETS}", f"a list of at most {_MOST_TARGETS} objects expected")
    for index, each in enumerate(targets):
        if not isinstance(each, Mapping):
            raise InvalidInput(f"{_PLACE}/{_TARGETS}[{index}]", "an object expected")
        for name in each:
            if name not in (_URL, _RELOAD, *_UNUSED):
                reason = no_such(name, [_URL, _RELOAD, *_UNUSED])
                raise InvalidInput(f"{_PLACE}/{_TARGETS}[{index}]/{name[:100]}", reason)
    return targets


def _warnings(targets: list[JsonMapping]) -> Iterator[str]:
    for index, each in enumerate(targets):
        for name in _UNUSED:
            if name in each:
                stored = " and not stored" if name == _LOGIN else ""
                yield f"{_PLACE}/{_TARGETS}[{index}]/{name}: not used{stored}, as no rule file is written"


def _root(given: Any, index: int, name: str) -> str:
    """Return the root of the API at an address."""
    place = f"{_PLACE}/{_TARGETS}[{index}]/{name}"
    parts = read_service_url(given) if isinstance(given, str) and len(given) <= 2048 else None
    if parts is None:
        raise InvalidInput(place, "an http or https URL without credentials, query and fragment expected")
    path = parts.path.removesuffix("/").removesuffix("/-/reload") if name == _RELOAD else parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"
