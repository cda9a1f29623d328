"""Several Helm releases in one request, as version 1 of Tacker's API names them (capi.md CR-005): ``using_helm_install_param``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_clients.charts import ChartInRepository, ChartRepositories, PinnedChart
from kubevnfm_csar.files import listed_path
from kubevnfm_csar.helm_set import assignments, set_value
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.objects import HelmChart, VduTarget
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.kubernetes_names import RELEASE_NAME_RULE, is_release_name
from kubevnfm_kit.nearest import nearest, shown
from kubevnfm_secrets import Secret

from kubevnfm_lcm_api.lifecycle.core.request_parameters import CHART, DEF_FILES, ORDER_ARTIFACT, RELEASES, USE_HELM

REPLICA_VALUES: Final = "helm_replica_values"
PINNED: Final = "helm_pinned_charts"
"""In the parameters of an instance: the charts of repositories that its releases have, by release."""
RELEASE: Final = "helmreleasename"
"""In an entry, and in one of ``vdu_mapping``."""
_PLACE: Final = "additionalParams"
_EXTERNAL, _FILE, _SET = "exthelmchart", "helmchartfile_path", "helmparameter"
_URL, _CHART_NAME, _VERSION = "exthelmrepo_url", "helmchartname", "helmchartversion"
_NAMES: Final = (
    *(RELEASE, _EXTERNAL, _FILE, _SET, _URL, _CHART_NAME, _VERSION),
    # The name of a repository is of the client that Tacker calls: the address is all that is used here.
    *("helmrepositoryname", "exthelmrepo_name"),
)
_MOST: Final = 50
_FLAGS: Final[Mapping[object, bool]] = {
    True: True,
    "true": True,
    "True": True,
    False: False,
    "false": False,
    "False": False,
}


@dataclass(frozen=True)
class AskedRelease:
    """An entry of ``using_helm_install_param``."""

    place: str
    name: str
    values: dict[str, Any]
    path: str = ""
    """The chart in the package; "" for one of a repository."""
    repository: str = ""
    chart: str = ""
    version: str | None = None
    """None: the newest one."""


def asks_for_releases(parameters: Mapping[str, Any]) -> bool:
    """Return whether the parameters of a request or of an instance say ``use_helm``. Raises InvalidInput."""
    given = parameters.get(USE_HELM)
    return given is not None and _flag(given, f"{_PLACE}/{USE_HELM}")


def _flag(given: object, place: str) -> bool:
    if not isinstance(given, str | bool) or given not in _FLAGS:
        raise InvalidInput(place, "true or false expected")
    return _FLAGS[given]


def asked_releases(parameters: Mapping[str, Any]) -> Sequence[AskedRelease]:
    """Return the releases of additionalParams, in order; none if they do not say ``use_helm``. Raises InvalidInput, Unprocessable."""
    if not asks_for_releases(parameters):
        for name in (RELEASES, REPLICA_VALUES):
            if parameters.get(name):
                raise Unprocessable(f"{_PLACE}/{name}", f"goes with {USE_HELM}, which is not true")
        return ()
    for name in (DEF_FILES, CHART, ORDER_ARTIFACT):
        if parameters.get(name):
            raise InvalidInput(f"{_PLACE}/{name}", f"not expected beside {USE_HELM}: the charts make the objects")
    listed = parameters.get(RELEASES)
    if not isinstance(listed, list | tuple) or not 0 < len(listed) <= _MOST:
        raise InvalidInput(f"{_PLACE}/{RELEASES}", f"a list of 1 to {_MOST} objects expected")
    found = [_asked(entry, f"{_PLACE}/{RELEASES}[{index}]") for index, entry in enumerate(listed)]
    for index, each in enumerate(found):
        if each.name in {other.name for other in found[:index]}:
            raise InvalidInput(f"{each.place}/{RELEASE}", f"{each.name} is there already; a name of its own expected")
    return found


def _asked(entry: object, place: str) -> AskedRelease:
    if not isinstance(entry, Mapping):
        raise InvalidInput(place, "an object expected")
    for name in entry:
        if name not in _NAMES:
            meant = nearest(str(name), _NAMES)
            raise InvalidInput(
                f"{place}/{shown(str(name))}",
                f"did you mean {meant}?" if meant else f"one of {', '.join(_NAMES)} expected",
            )
    name = entry.get(RELEASE)
    if not isinstance(name, str) or not is_release_name(name):
        raise InvalidInput(f"{place}/{RELEASE}", RELEASE_NAME_RULE)
    values = _values(entry.get(_SET), f"{place}/{_SET}")
    is_external = _flag(entry.get(_EXTERNAL), f"{place}/{_EXTERNAL}")
    for other in (_FILE,) if is_external else (_URL, _CHART_NAME, _VERSION):
        if entry.get(other):
            raise InvalidInput(f"{place}/{other}", f"not expected with {_EXTERNAL}: {str(is_external).lower()}")
    if not is_external:
        return AskedRelease(place, name, values, path=_text(entry, _FILE, place, "a path in the package"))
    version = entry.get(_VERSION)
    if version is not None and (not isinstance(version, str) or not version):
        raise InvalidInput(f"{place}/{_VERSION}", "the version of the chart expected, as a text")
    return AskedRelease(
        place,
        name,
        values,
        repository=_text(entry, _URL, place, "the http(s) address of the repository, without credentials,"),
        chart=_text(entry, _CHART_NAME, place, "the name of the chart in the repository"),
        version=version,
    )


def _text(entry: Mapping[str, Any], name: str, place: str, expected: str) -> str:
    given = entry.get(name)
    # A URL with credentials is a Secret.
    if not isinstance(given, str) or not given:
        raise InvalidInput(f"{place}/{name}", f"{expected} expected")
    return given


def _values(given: object, place: str) -> dict[str, Any]:
    """Return the values that ``helmparameter`` sets: texts as of ``helm --set``, or, once they are read, an object."""
    values: dict[str, Any] = {}
    pairs = given.items() if isinstance(given, Mapping) else _read(given, place)
    for key, value in pairs:
        try:
            set_value(values, str(key), value)
        except ValueError as error:
            raise InvalidInput(f"{place}/{shown(str(key))}", str(error)) from None
    return values


def _read(given: object, place: str) -> Iterator[tuple[str, Any]]:
    if given is not None and not isinstance(given, list | tuple):
        raise InvalidInput(place, "a list of texts key=value expected")
    for index, each in enumerate(given or ()):
        if isinstance(each, Secret) or not isinstance(each, str):
            raise InvalidInput(f"{place}[{index}]", "a text key=value expected")
        try:
            yield from assignments(each)
        except ValueError as error:
            raise InvalidInput(f"{place}[{index}]", str(error)) from None


def with_values_read(document: Any) -> Any:
    """Return a request with an object in place of each ``helmparameter``, so that a secret among its values is known by name.

    Everything else stays as it is. Raises InvalidInput.
    """
    parameters = document.get(_PLACE) if isinstance(document, Mapping) else None
    listed = parameters.get(RELEASES) if isinstance(parameters, Mapping) else None
    if not isinstance(listed, list) or not isinstance(parameters, Mapping):
        return document
    read = []
    for index, entry in enumerate(listed):
        place = f"{_PLACE}/{RELEASES}[{index}]/{_SET}"
        is_listed = isinstance(entry, Mapping) and isinstance(entry.get(_SET), list)
        read.append({**entry, _SET: _by_key(entry[_SET], place)} if is_listed else entry)
    return {**document, _PLACE: {**parameters, RELEASES: read}}


def _by_key(listed: object, place: str) -> dict[str, Any]:
    # As Helm: the last one is used.
    return dict(_read(listed, place))


async def pinned_charts(
    repositories: ChartRepositories, parameters: Mapping[str, Any]
) -> Mapping[str, Mapping[str, str]]:
    """Return the chart of a repository that each release has from now on, by release. Raises InvalidInput, Unprocessable."""
    if PINNED in parameters:
        raise InvalidInput(f"{_PLACE}/{PINNED}", "not expected: kubevnfm writes it")
    asked = [each for each in asked_releases(parameters) if each.repository]
    if not asked:
        return {}
    found = await repositories.find(
        [ChartInRepository(each.repository, each.chart, each.version, f"{each.place}/{_URL}") for each in asked]
    )
    return {each.name: vars(chart) for each, chart in zip(asked, found, strict=True)}


def releases_of(
    flavour: Flavour,
    parameters: Mapping[str, Any],
    vdus: Sequence[VduTarget],
    files: frozenset[str] | None = None,
) -> tuple[HelmChart, ...]:
    """Return the releases that additionalParams of a request, or those of an instance, name.

    ``vdus``: they have the numbers of replicas. ``files``: the paths in the package; None for an instance, whose parameters were checked.
    Raises InvalidInput naming the parameter; Unprocessable.
    """
    asked = asked_releases(parameters)
    values = {each.name: each.values for each in asked}
    if asked:
        _set_replicas(flavour, parameters, vdus, values)
    return tuple(_chart(each, parameters.get(PINNED) or {}, files) for each in asked)


def _chart(asked: AskedRelease, pinned: Mapping[str, Any], files: frozenset[str] | None) -> HelmChart:
    if not asked.repository:
        path = chart_in_package(asked.path, files, f"{asked.place}/{_FILE}")
        return HelmChart(path=path, release_name=asked.name, values=asked.values)
    if asked.name not in pinned:
        raise Unprocessable(f"{asked.place}/{_EXTERNAL}", "a chart of a repository is for CNFs alone")
    chart = PinnedChart(**pinned[asked.name])
    return HelmChart(path=chart.url, digest=chart.digest, release_name=asked.name, values=asked.values)


def chart_in_package(path: object, files: frozenset[str] | None, place: str) -> str:
    """Return the path of a chart, a folder or an archive, that the package has; ``files`` as of `releases_of`. Raises InvalidInput."""
    if not isinstance(path, str) or not path:
        raise InvalidInput(place, "a path in the package expected")
    found = listed_path(path).rstrip("/")
    if files is not None and found not in files and f"{found}/Chart.yaml" not in files:
        raise InvalidInput(place, f"the package has no archive {found}, and no {found}/Chart.yaml")
    return found


def _set_replicas(
    flavour: Flavour, parameters: Mapping[str, Any], vdus: Sequence[VduTarget], values: Mapping[str, dict[str, Any]]
) -> None:
    """Set the value of each aspect that has one to the number of instances of its VDUs, in the releases of these VDUs."""
    given, place = parameters.get(REPLICA_VALUES, {}), f"{_PLACE}/{REPLICA_VALUES}"
    if not isinstance(given, Mapping):
        raise InvalidInput(place, "an object from aspect to the key of a value expected")
    for aspect, key in given.items():
        here = f"{place}/{aspect}"
        if aspect not in flavour.aspects:
            raise InvalidInput(here, f"an aspect of the flavour expected: {', '.join(flavour.aspects) or 'none'}")
        if not isinstance(key, str):
            raise InvalidInput(here, "the key of the chart's value expected, as a text")
        scaled = set(flavour.scaled_vdus(aspect))
        mine = [vdu for vdu in vdus if vdu.vdu_id in scaled and vdu.replicas is not None]
        counts: dict[str, int] = {}
        for vdu in mine:
            release = vdu.release_name or _release_by_name(vdu.name, values)
            if release is None or vdu.replicas is None:
                why = f"{vdu.vdu_id} belongs to none of the releases {', '.join(values)}: name its {RELEASE} in vdu_mapping"
                raise InvalidInput(here, why)
            if counts.setdefault(release, vdu.replicas) != vdu.replicas:
                raise InvalidInput(
                    here, f"the VDUs of {aspect} in release {release} have different numbers of instances"
                )
        for release, count in counts.items():
            try:
                set_value(values[release], key, count)
            except ValueError as error:
                raise InvalidInput(here, str(error)) from None


def _release_by_name(name: str, releases: Mapping[str, object]) -> str | None:
    """Return the release of a workload: the only one, or the longest that its name begins with (``<release>-<chart>``)."""
    if len(releases) == 1:
        return next(iter(releases))
    fitting = [each for each in releases if name == each or name.startswith(f"{each}-")]
    return max(fitting, key=len, default=None)
