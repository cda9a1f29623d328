"""The Helm chart of a CNF (capi.md CR-005): its path in the package, its values, and the value of each VDU's replicas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubevnfm_clients.charts import ChartPrograms, HelmMissing
from kubevnfm_csar.artifact_order import ArtifactOrder
from kubevnfm_csar.files import listed_path
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.objects import HelmChart, VduTarget
from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_lcm_api.lifecycle.core.request_parameters import CHART

VALUES: Final = "helm_parameters"
VALUE_NAMES: Final = "helm_value_names"
_REPLICA: Final = "replica"
_OTHERS: Final = ("using_helm_install_param", "use_helm")
"""Tacker's parameters of version 1, which name repositories and several charts."""
_KEY: Final = re.compile(r"(?:[^.\[\]\\]|\\.)+")
"""A part of a key as Helm's ``--set`` has it; a backslash takes the meaning of a dot."""
_MOST_PARTS: Final = 20
"""Each part is a level, and no database or message holds an object that is nested deeper than some hundred."""
_PLACE: Final = "additionalParams"


async def check_chart_program(
    programs: ChartPrograms, chart: HelmChart | None, artifacts: ArtifactOrder | None
) -> None:
    """Check that the charts of a request, or of the order of its package, can be rendered. Raises HelmMissing."""
    places = [(f"{_PLACE}/{CHART}", chart.path)] if chart is not None else []
    places += [("vnfdId", path) for path in (artifacts.charts if artifacts is not None else ())]
    if places and (reason := await programs.why_missing()):
        first, *more = ((place, f"{path}: {reason}") for place, path in places)
        raise HelmMissing(*first, *more)


def chart_of(
    vnf_instance_id: str,
    flavour: Flavour,
    parameters: Mapping[str, Any],
    vdus: Sequence[VduTarget],
    files: frozenset[str] | None = None,
) -> HelmChart | None:
    """Return the chart that additionalParams name; None if they name none.

    ``vdus``: they have the numbers of replicas. ``files``: the paths in the package; None: the parameters of an instance,
    which were checked when it was instantiated. Raises InvalidInput naming the parameter; Unprocessable for parameters of
    Tacker's version 1.
    """
    for name in _OTHERS:
        if parameters.get(name) not in (None, False, "false", "False"):
            raise Unprocessable(f"{_PLACE}/{name}", f"not supported: name the package's chart by {CHART}")
    path = parameters.get(CHART)
    if path is None:
        for name in (VALUES, VALUE_NAMES):
            if name in parameters:
                raise InvalidInput(f"{_PLACE}/{name}", f"goes with {CHART}, which is missing")
        return None
    values: dict[str, Any] = {}
    for key, value in _mapping(parameters, VALUES).items():
        _set(values, key, value, place=f"{_PLACE}/{VALUES}/{key}")
    replicas = {vdu.vdu_id: vdu.replicas for vdu in vdus}
    for vdu_id, entry in _mapping(parameters, VALUE_NAMES).items():
        place = f"{_PLACE}/{VALUE_NAMES}/{vdu_id}"
        if vdu_id not in flavour.vdus:
            raise InvalidInput(place, f"a VDU of the flavour expected: {', '.join(flavour.vdus) or 'none'}")
        if not isinstance(entry, Mapping) or set(entry) != {_REPLICA} or not isinstance(entry[_REPLICA], str):
            raise InvalidInput(place, f"an object with {_REPLICA} expected, the key of the chart's value")
        if replicas[vdu_id] is not None:
            _set(values, entry[_REPLICA], replicas[vdu_id], place=f"{place}/{_REPLICA}")
    # As the release names of Tacker.
    release_name = f"vnf{vnf_instance_id.replace('-', '')}"
    return HelmChart(path=_path(path, files), release_name=release_name, values=values)


def _path(path: object, files: frozenset[str] | None) -> str:
    place = f"{_PLACE}/{CHART}"
    if not isinstance(path, str) or not path:
        raise InvalidInput(place, "a path in the package expected")
    found = listed_path(path).rstrip("/")
    if files is not None and found not in files and f"{found}/Chart.yaml" not in files:
        raise InvalidInput(place, f"the package has no archive {found}, and no {found}/Chart.yaml")
    return found


def _mapping(parameters: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = parameters.get(name, {})
    if not isinstance(found, Mapping):
        raise InvalidInput(f"{_PLACE}/{name}", "an object expected")
    return found


def _set(values: dict[str, Any], key: str, value: Any, *, place: str) -> None:
    """Set a value by the key that Helm's ``--set`` has for it: ``image.tag`` is ``tag`` in ``image``."""
    parts = [part.replace("\\", "") for part in _KEY.findall(key)]
    if not parts or ".".join(_KEY.findall(key)) != key:
        raise InvalidInput(place, "a key of the chart's values expected, parts joined by dots, without an index")
    if len(parts) > _MOST_PARTS:
        raise InvalidInput(place, f"a key of at most {_MOST_PARTS} parts expected, got {len(parts)}")
    node = values
    for part in parts[:-1]:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise InvalidInput(place, f"{part} has a value of its own already")
    if parts[-1] in node:
        raise InvalidInput(place, "given twice")
    node[parts[-1]] = dict(value) if isinstance(value, Mapping) else value
