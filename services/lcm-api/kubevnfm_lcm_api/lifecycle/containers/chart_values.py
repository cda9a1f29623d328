"""Finds values of a request that a chart of the package most likely does not read (capi.md CR-005).

The templates of a chart alone say which values they read. Its ``values.yaml`` lists most of them, so a name that is not there and
is like one that is, is shown as a warning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_csar.files import listed_path
from kubevnfm_csar.helm_set import set_value
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.foreign_yaml.kubernetes import read_one_kubernetes_yaml
from kubevnfm_kit.request_warnings import RequestWarning, pointer
from kubevnfm_sol.free_containers import Container, misspelled

from kubevnfm_lcm_api.lifecycle.containers.charts import VALUES
from kubevnfm_lcm_api.lifecycle.containers.helm_releases import asked_releases
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.request_parameters import CHART

_LARGEST: Final = 2**20
"""Bytes of a file of values that is read."""
_READERS: Final = "values.yaml of the chart has no value"
Path = tuple[str | int, ...]


async def misspelled_values(
    packages: PackageCatalogue, package: PackageRef | None, parameters: Mapping[str, Any]
) -> Sequence[RequestWarning]:
    """Return a warning for each value of a chart in the package whose name is like one of its ``values.yaml``.

    ``parameters``: additionalParams. Archives, and charts of repositories, are not opened for it.
    """
    try:
        given = [
            (f"{listed_path(chart).rstrip('/')}/values.yaml", path, values)
            for chart, path, values in _given(parameters)
            if values
        ]
    except (VnfmError, ValueError):
        # An operation that does not read them has not checked them.
        return ()
    if package is None or not given:
        return ()
    names = list(dict.fromkeys(name for name, _, _ in given))
    files = await packages.files(package.package_id, names, limit_bytes=_LARGEST)
    # In a thread: both may be large.
    return await asyncio.to_thread(misspelled, _containers(files, given), _READERS)


def _given(parameters: Mapping[str, Any]) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """Yield path in the package, path in the request, and values of each chart."""
    chart, values = parameters.get(CHART), parameters.get(VALUES)
    if isinstance(chart, str) and isinstance(values, Mapping):
        yield chart, ("additionalParams", VALUES), _nested(values)
    elif chart is None:
        for index, each in enumerate(asked_releases(parameters)):
            if each.path:
                yield each.path, ("additionalParams", "using_helm_install_param", index, "helmparameter"), each.values


def _nested(values: Mapping[str, Any]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        set_value(found, key, value)
    return found


def _containers(
    files: Mapping[str, bytes], given: Sequence[tuple[str, Path, Mapping[str, Any]]]
) -> Iterator[Container]:
    known = {name: _read(raw) for name, raw in files.items()}
    for name, path, values in given:
        # The request has dotted keys, so its part is the object of the values.
        yield from _objects(values, known.get(name), path, pointer(path))


def _read(raw: bytes) -> object:
    try:
        return read_one_kubernetes_yaml(raw.decode())
    except ValueError:
        # Its rendering will say so.
        return None


def _objects(given: Mapping[str, Any], known: object, path: Path, field: str | None) -> Iterator[Container]:
    if not isinstance(known, Mapping) or not known:
        return
    yield Container(path, list(given), list(known), field)
    for name, value in given.items():
        if isinstance(value, Mapping) and name in known:
            yield from _objects(value, known[name], (*path, name), field)
