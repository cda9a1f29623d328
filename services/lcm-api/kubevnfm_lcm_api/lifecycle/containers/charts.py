"""The Helm chart of a CNF (capi.md CR-005): its path in the package, its values, and the value of each VDU's replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubevnfm_clients.charts import ChartPrograms, HelmMissing
from kubevnfm_csar.artifact_order import ArtifactOrder
from kubevnfm_csar.helm_set import set_value
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.objects import ChartOrder, HelmChart, VduTarget
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_lcm_api.lifecycle.containers.helm_releases import chart_in_package
from kubevnfm_lcm_api.lifecycle.core.request_parameters import CHART, RELEASES

VALUES: Final = "helm_parameters"
VALUE_NAMES: Final = "helm_value_names"
_REPLICA: Final = "replica"
_PLACE: Final = "additionalParams"


async def check_chart_program(programs: ChartPrograms, order: ChartOrder, artifacts: ArtifactOrder | None) -> None:
    """Check that the charts of a request, or of the order of its package, can be rendered. Raises HelmMissing."""
    named = RELEASES if order.chart is None else CHART
    places = [(f"{_PLACE}/{named}", each.path) for each in order.charts]
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
    """Return the chart that additionalParams name as version 2 of Tacker's API does; None if they name none.

    ``vdus``: they have the numbers of replicas. ``files``: the paths in the package; None: the parameters of an instance,
    which were checked when it was instantiated. Raises InvalidInput naming the parameter.
    """
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
    found = chart_in_package(path, files, f"{_PLACE}/{CHART}")
    return HelmChart(path=found, release_name=release_name, values=values)


def _mapping(parameters: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = parameters.get(name, {})
    if not isinstance(found, Mapping):
        raise InvalidInput(f"{_PLACE}/{name}", "an object expected")
    return found


def _set(values: dict[str, Any], key: str, value: Any, *, place: str) -> None:
    try:
        set_value(values, key, value)
    except ValueError as error:
        raise InvalidInput(place, str(error)) from None
