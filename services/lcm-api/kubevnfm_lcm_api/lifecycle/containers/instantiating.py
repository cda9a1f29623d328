"""Instantiate of a CNF (capi.md chapter 3): the request's parameters and their checks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from kubevnfm_cluster.request import LOAD_BALANCER, request_load_balancer
from kubevnfm_csar.artifact_order import ORDER, ArtifactOrder
from kubevnfm_csar.files import listed_path
from kubevnfm_csar.placeholders import VARIABLES
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.objects import ChartOrder, HelmChart, Variables, VduTarget
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import Secret
from kubevnfm_sol.lcm import InstantiateVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.containers.charts import chart_of
from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.drivers import check_cnf_drivers, executor_phases
from kubevnfm_lcm_api.lifecycle.containers.helm_releases import PINNED, RELEASE, asked_releases, releases_of
from kubevnfm_lcm_api.lifecycle.containers.ordering import (
    kubernetes_version_in,
    order_artifact_in,
    ordered_namespace,
    ordered_wait_s,
    release_name_in,
    values_of,
)
from kubevnfm_lcm_api.lifecycle.containers.profiles import profiles_of
from kubevnfm_lcm_api.lifecycle.containers.variables import requested_variables
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.request_parameters import CHART, DEF_FILES, ORDER_ARTIFACT, flag
from kubevnfm_lcm_api.lifecycle.scripts.asked import requested_instance, script_fields
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of

_MAPPING: Final = "vdu_mapping"
_WORKLOADS: Final = ("DaemonSet", "Deployment", "Pod", "ReplicaSet", "StatefulSet")
"""The kinds that can implement a VDU (capi.md CR-030)."""
LONGEST_WAIT_S: Final = 86_400
"""The same bound as for the other waits that a request can ask for (gracefulTerminationTimeout): a day."""


async def cnf_draft(
    common: InstantiateDraft,
    record: InstanceRecord,
    flavour: Flavour,
    asked: Asked[InstantiateVnfRequest],
    files: frozenset[str],
    artifacts: ArtifactOrder | None = None,
    pinned: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> InstantiateCnfDraft:
    """Return the draft. ``common``: what it has in common with the draft of a VM-based VNF; ``files``: the paths in the package;
    ``artifacts``: the order of the package, if the request uses it; ``pinned``: the charts of repositories, by release.

    Raises: InvalidInput naming the parameter; Unprocessable for a management driver that this VNFM does not have, and for
    a script that cannot be run.
    """
    check_cnf_drivers(flavour)
    parameters, wait_s = asked.request.additional_params, wait_timeout(asked.request.additional_params)
    if pinned:
        # Stored, so that later operations have the same charts.
        parameters = {**parameters, PINNED: dict(pinned)}
        common = common.model_copy(update={"parameters": parameters})
    if artifacts is None:
        namespace = parameters.get("namespace")
        if namespace is not None and not isinstance(namespace, str):
            raise InvalidInput("additionalParams/namespace", "a text expected")
    else:
        # Stored by name, so that later operations use the same order.
        parameters = {**parameters, ORDER_ARTIFACT: artifacts.name}
        common = common.model_copy(update={"parameters": parameters})
        # In threads, here and below: values may have megabytes.
        namespace = await asyncio.to_thread(ordered_namespace, parameters, common.vnf_instance_id)
        wait_s = wait_s or ordered_wait_s(artifacts)
    phases = executor_phases(flavour)
    if phases:
        await check_load_balancer(parameters, files)
    order = await asyncio.to_thread(
        objects_order,
        parameters,
        flavour,
        flavour.initial_counts(asked.request.instantiation_level_id),
        record=record,
        package=common.package,
        vim=common.vim,
        namespace=namespace,
        variables=requested_variables(asked.original),
        def_files=artifacts.files if artifacts is not None else (),
        files=files if artifacts is None else None,
    )
    if order.variables is not None and order.charts:
        raise Unprocessable(VARIABLES, "a Helm chart has values of its own: leave it out")
    scripts = scripts_of(flavour, OperationType.INSTANTIATE)
    return await asyncio.to_thread(
        InstantiateCnfDraft,
        **{**vars(common), **vars(order), **script_fields(scripts, asked, requested_instance(record.vnf, common))},
        adopt=flag(parameters, "adopt"),
        wait_timeout_s=wait_s,
        phases=phases,
        ignored_artifacts=artifacts.ignored(files) if artifacts is not None else (),
        is_placed=record.internals.multicloud is not None,
    )


def objects_order(
    parameters: Mapping[str, Any],
    flavour: Flavour,
    counts: Mapping[str, int],
    *,
    record: InstanceRecord,
    package: PackageRef,
    vim: VimConnection,
    namespace: str | None,
    variables: Variables | None,
    def_files: tuple[str, ...] = (),
    files: frozenset[str] | None = None,
) -> ChartOrder:
    """Return the objects that additionalParams of a request, or those of an instance, describe.

    ``counts``: instances by VDU; ``def_files``: of an instance or of an order artifact; ``files``: the paths in the package of a request, None for
    an instance, whose parameters are checked.
    Raises: InvalidInput naming the parameter; Unprocessable.
    """
    vdus = vdu_targets(flavour, parameters, counts)
    chart = chart_of(record.vnf.id, flavour, parameters, vdus, files)
    releases = releases_of(flavour, parameters, vdus, files)
    order = ChartOrder(
        package=package,
        vim=vim,
        def_files=def_files if def_files or files is None or releases else _def_files(parameters, files, chart),
        chart=chart,
        releases=releases,
        namespace=namespace,
        vdus=vdus,
        variables=variables,
    )
    return with_attributes(order, parameters, record)


def with_attributes(order: ChartOrder, parameters: Mapping[str, Any], record: InstanceRecord) -> ChartOrder:
    """Return the order with the attributes that additionalParams have as they are. Raises InvalidInput naming the parameter."""
    artifact = order_artifact_in(parameters)
    is_ordered = artifact is not None
    # Those of an order before end with it.
    attributes: dict[str, Any] = {
        "multi_namespace": flag(parameters, "multi_namespace"),
        "order_artifact": artifact,
        "values": values_of(parameters, record, order) if is_ordered else {},
        "compute_profiles": profiles_of(parameters) if is_ordered else (),
        "release_name": release_name_in(parameters) if is_ordered else None,
        "kubernetes_version": kubernetes_version_in(parameters) if is_ordered else None,
    }
    return order.model_copy(update=attributes)


def wait_timeout(parameters: Mapping[str, Any]) -> float | None:
    """Return the time in seconds to wait for readiness that additionalParams name. Raises InvalidInput."""
    wait = parameters.get("wait_timeout")
    if wait is None:
        return None
    if not isinstance(wait, int | float) or isinstance(wait, bool) or not 0 < wait <= LONGEST_WAIT_S:
        raise InvalidInput("additionalParams/wait_timeout", f"seconds above 0, at most {LONGEST_WAIT_S}, expected")
    return float(wait)


async def check_load_balancer(parameters: Mapping[str, Any], files: frozenset[str]) -> None:
    """Check the load balancer that additionalParams name. Raises InvalidInput naming the field."""
    # In a thread, because a private key may have to be opened with its passphrase.
    balancer = await asyncio.to_thread(request_load_balancer, parameters)
    if balancer.script_path not in files:
        place = f"additionalParams/{LOAD_BALANCER}/script_path"
        raise InvalidInput(place, f"the package has no file {balancer.script_path}")


def vdu_targets(flavour: Flavour, parameters: Mapping[str, Any], counts: Mapping[str, int]) -> tuple[VduTarget, ...]:
    """Return the workload and the replicas of each VDU.

    ``parameters``: additionalParams; ``counts``: instances by VDU. Raises InvalidInput.
    """
    return tuple(
        target.model_copy(update={"replicas": _replicas(flavour, target.vdu_id, counts)})
        for target in _targets(flavour, parameters)
    )


def _targets(flavour: Flavour, parameters: Mapping[str, Any]) -> Iterator[VduTarget]:
    """Yield the workload of each VDU: the one that ``vdu_mapping`` gives it, otherwise that of its name.

    Raises: InvalidInput naming the entry of ``vdu_mapping`` that is not understood.
    """
    place = f"additionalParams/{_MAPPING}"
    given = parameters.get(_MAPPING, {})
    if not isinstance(given, Mapping):
        raise InvalidInput(place, "an object with one entry for each VDU expected")
    releases = [each.name for each in asked_releases(parameters)]
    for vdu_id in given:
        if vdu_id not in flavour.vdus:
            raise InvalidInput(
                f"{place}/{vdu_id}", f"a VDU of the flavour expected: {', '.join(flavour.vdus) or 'none'}"
            )
    for vdu_id, vdu in flavour.vdus.items():
        if vdu_id in given:
            yield _mapped(vdu_id, given[vdu_id], place=f"{place}/{vdu_id}", releases=releases)
        else:
            is_in_chart = CHART in parameters or bool(releases)
            yield VduTarget(vdu_id=vdu_id, name=vdu.name or vdu_id, is_in_chart=is_in_chart)


def _mapped(vdu_id: str, entry: object, *, place: str, releases: Sequence[str]) -> VduTarget:
    """``releases``: those of the request; without any, an entry names none."""
    if not isinstance(entry, Mapping):
        raise InvalidInput(place, "an object with kind and name expected")
    known = ("kind", "name", RELEASE) if releases else ("kind", "name")
    for attribute in entry:
        if attribute not in known:
            raise InvalidInput(f"{place}/{attribute}", f"{' and '.join(known)} expected, nothing else")
    release = entry.get(RELEASE)
    if release is not None and release not in releases:
        raise InvalidInput(f"{place}/{RELEASE}", f"one of the releases {', '.join(releases)} expected")
    kind, name = entry.get("kind"), entry.get("name")
    if kind not in _WORKLOADS:
        raise InvalidInput(f"{place}/kind", f"one of {', '.join(_WORKLOADS)} expected")
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{place}/name", "the workload's metadata.name expected")
    return VduTarget(vdu_id=vdu_id, name=name, kind=kind, release_name=release)


def _replicas(flavour: Flavour, vdu_id: str, counts: Mapping[str, int]) -> int | None:
    """Return the workload's number of replicas in the VNFD; None if the VNFD has none and the manifest decides."""
    return counts.get(vdu_id) if declares_count(flavour, vdu_id) else None


def declares_count(flavour: Flavour, vdu_id: str) -> bool:
    """Return whether the VNFD says how many instances of the VDU there are."""
    return vdu_id in flavour.initial_deltas or any(vdu_id in level.counts for level in flavour.levels.values())


def _def_files(parameters: Mapping[str, Any], files: frozenset[str], chart: HelmChart | None) -> tuple[str, ...]:
    place = f"additionalParams/{DEF_FILES}"
    if ORDER_ARTIFACT in parameters:
        raise Unprocessable(
            ORDER, "not expected for a workload cluster, whose manifests the request lists: leave it out"
        )
    if chart is None:
        return manifest_files(parameters.get(DEF_FILES), files, place=place)
    if parameters.get(DEF_FILES):
        raise InvalidInput(place, f"not expected beside {CHART}: the chart makes the objects")
    return ()


def manifest_files(listed: object, files: frozenset[str], *, place: str) -> tuple[str, ...]:
    """Return the manifests that a request names at ``place`` (capi.md CR-004, CR-005). Raises InvalidInput."""
    if not isinstance(listed, list) or not listed:
        raise InvalidInput(place, "a list of at least one path or URL expected for a CNF")
    for index, name in enumerate(listed):
        if isinstance(name, Secret) or not isinstance(name, str):
            raise InvalidInput(f"{place}[{index}]", "a path in the package or an http(s) URL expected")
        # A URL is fetched by infra-k8s, which checks the address.
        if not name.startswith(("http://", "https://")) and listed_path(name) not in files:
            raise InvalidInput(f"{place}[{index}]", f"the package has no file {name}")
    return tuple(listed_path(name) for name in listed)
