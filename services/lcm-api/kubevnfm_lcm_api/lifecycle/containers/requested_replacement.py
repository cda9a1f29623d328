"""Change of a CNF's package (SOL003 5.4.11a; capi.md CR-035, CR-094): all objects, or the images of some VDUs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubevnfm_csar.artifact_order import ArtifactOrder
from kubevnfm_csar.errors import UnknownFlavour
from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_events import PackageRef
from kubevnfm_events.objects import Variables
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_sol.lcm import ChangeCurrentVnfPkgRequest, OperationType
from pydantic.alias_generators import to_camel

from kubevnfm_lcm_api.lifecycle.containers.drivers import check_cnf_drivers, executor_phases
from kubevnfm_lcm_api.lifecycle.containers.instantiating import manifest_files, vdu_targets, with_attributes
from kubevnfm_lcm_api.lifecycle.containers.ordering import changed_parameters
from kubevnfm_lcm_api.lifecycle.containers.replacing import ReplaceCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.containers.variables import requested_variables, with_variables
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.request_parameters import (
    CAPI,
    CHART,
    DEF_FILES,
    RELEASE_NAME,
    RELEASES,
    REPLACE,
    VALUES,
)
from kubevnfm_lcm_api.lifecycle.core.scale_levels import declared_counts, scale_status
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_fields
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of

_ROLLING: Final = "RollingUpdate"
_MOST_KINDS: Final = 50
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
COORDINATE: Final = "lcm-operation-coordinate"


def check_capi(parameters: Mapping[str, Any], supported: tuple[str, ...]) -> Mapping[str, Any]:
    """Return ``additionalParams.capi`` of a change of package. Raises InvalidInput, Unprocessable naming the field."""
    given = parameters.get(CAPI, {})
    place = f"additionalParams/{CAPI}"
    if not isinstance(given, Mapping):
        raise InvalidInput(place, "an object expected")
    for name in given:
        if name not in supported:
            why = f"a change of package supports {', '.join(supported)} only: leave it out"
            raise Unprocessable(f"{place}/{name}", why)
    return given


def replaced_cnf(
    vnf: CnfUnderChange,
    asked: Asked[ChangeCurrentVnfPkgRequest],
    *,
    package: PackageRef,
    vnfd: Vnfd,
    files: frozenset[str],
    artifacts: ArtifactOrder | None,
    identity: Mapping[str, str],
    tasks: tuple[str, ...],
) -> ReplaceCnfDraft:
    """Return the draft of a change to another package.

    ``files``: the paths in the package; ``artifacts``: its order, if the request uses it; ``identity``: the attributes of the instance that follow it; ``tasks``: the
    operations that it supports. Raises: InvalidInput naming the parameter; Unprocessable for a package that the CNF cannot
    be changed to.
    """
    given = asked.request.additional_params
    flavour = _flavour(vnf, vnfd)
    images_of = _check_parameters(given, vnf.flavour)
    for name in (CHART, RELEASES):
        if name in {**vnf.record.internals.parameters, **given}:
            raise Unprocessable(f"additionalParams/{name}", "not supported for a change of package: manifests expected")
    for name in ("ext_virtual_links", "ext_managed_virtual_links", "vim_connection_info"):
        if getattr(asked.request, name):
            raise Unprocessable(to_camel(name), "not supported for the change of a CNF's package: leave it out")
    place = f"additionalParams/{DEF_FILES}"
    if DEF_FILES not in given and not images_of and artifacts is None:
        raise InvalidInput(place, "the files of the package that describe the CNF expected")
    new_files = artifacts.files if artifacts is not None else ()
    if DEF_FILES in given:
        new_files = manifest_files(given[DEF_FILES], files, place=place)
    if images_of:
        vnf.check_files(files, new_files)
    # The new package may allow fewer levels; a later scaling begins at the highest one.
    levels = {name: min(vnf.scale_levels.get(name, 0), a.max_scale_level) for name, a in flavour.aspects.items()}
    earlier = {} if asked.is_whole else vnf.record.internals.parameters
    present = vnf.change(asked, OperationType.CHANGE_VNFPKG)
    variables = _variables(present.variables, asked.original)
    # The parameters of a workload cluster stay those that it was built with, but for its variables.
    others = {name: value for name, value in given.items() if name not in (CAPI, REPLACE)}
    parameters = with_variables(
        changed_parameters(earlier, others, artifacts, is_merge_patch=asked.is_merge_patch), variables
    )
    namespaces = {given.get("namespace"), parameters.get(VALUES, {}).get("namespace")} - {None, vnf.release.namespace}
    if namespaces:
        raise Unprocessable(
            "additionalParams/namespace", f"{vnf.release.namespace}, where the CNF is, expected: it does not move"
        )
    if parameters.get(RELEASE_NAME) != vnf.order.release_name:
        raise Unprocessable(f"additionalParams/{RELEASE_NAME}", "it stays as it was given first: leave it out")
    # As Tacker: the scripts are those of the package that the VNF is changed to.
    scripts = scripts_of(flavour, OperationType.CHANGE_VNFPKG)
    vdus = vdu_targets(flavour, parameters, declared_counts(flavour, None, levels))
    wanted = vnf.order.model_copy(update={"package": package, "vdus": vdus, "variables": variables})
    order = with_attributes(wanted, parameters, vnf.record)
    return ReplaceCnfDraft(
        **{**vars(present), **vars(order), **script_fields(scripts, asked, vnf.record.vnf)},
        before_package=vnf.package,
        new_files=new_files,
        images_of=images_of,
        replace_kinds=_replaced_kinds(given, images_of),
        vdus_before=present.vdus,
        scale_status=scale_status(levels),
        max_scale_levels=scale_status({name: aspect.max_scale_level for name, aspect in flavour.aspects.items()}),
        parameters=parameters,
        variables_before=present.variables,
        order_artifact_before=present.order_artifact,
        values_before=present.values,
        compute_profiles_before=present.compute_profiles,
        kubernetes_version_before=present.kubernetes_version,
        holds_more=vnf.record.internals.holds_more,
        outputs_before=present.outputs,
        ignored_artifacts=None if images_of else artifacts.ignored(files) if artifacts is not None else (),
        tasks=tasks,
        phases=executor_phases(flavour),
        extensions=asked.request.extensions,
        vnf_configurable_properties=asked.request.vnf_configurable_properties,
        vnf=dict(identity),
    )


def _flavour(vnf: CnfUnderChange, vnfd: Vnfd) -> Flavour:
    """Return the CNF's flavour in the new package. Raises Unprocessable."""
    try:
        flavour = vnfd.flavour(vnf.flavour.flavour_id)
    except UnknownFlavour as error:
        raise Unprocessable("vnfdId", f"the VNF has flavour {vnf.flavour.flavour_id}: {error}") from error
    check_cnf_drivers(flavour)
    return flavour


def _check_parameters(given: Mapping[str, Any], flavour: Flavour) -> tuple[str, ...]:
    """Return the VDUs whose images alone change; none if all objects do. Raises InvalidInput, Unprocessable."""
    if given.get("upgrade_type", _ROLLING) != _ROLLING:
        raise InvalidInput("additionalParams/upgrade_type", f"{_ROLLING} expected")
    for name in given:
        if name.startswith(COORDINATE):
            raise Unprocessable(f"additionalParams/{name}", "a CNF has no machines that a script could coordinate")
    listed = given.get("vdu_params", [])
    if not isinstance(listed, list | tuple):
        raise InvalidInput("additionalParams/vdu_params", "an array of objects expected")
    named: list[str] = []
    for index, one in enumerate(listed):
        place = f"additionalParams/vdu_params[{index}]/vdu_id"
        vdu_id = one.get("vdu_id") if isinstance(one, Mapping) else None
        if not isinstance(vdu_id, str):
            raise InvalidInput(place, "the VDU's id expected")
        if vdu_id not in flavour.vdus:
            raise InvalidInput(place, f"the VNF has no VDU {vdu_id}; it has {', '.join(flavour.vdus)}")
        if vdu_id in named:
            raise InvalidInput(place, f"VDU {vdu_id} is there already; one entry for each VDU expected")
        named.append(vdu_id)
    return tuple(named)


def _replaced_kinds(given: Mapping[str, Any], images_of: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of objects that may be replaced; ``images_of``: the VDUs whose images alone change. Raises InvalidInput, Unprocessable."""
    if REPLACE in given and images_of:
        raise Unprocessable(f"additionalParams/{REPLACE}", "not with vdu_params: images change without a replacement")
    kinds = given.get(REPLACE, [])
    if not isinstance(kinds, list | tuple) or len(kinds) > _MOST_KINDS:
        raise InvalidInput(f"additionalParams/{REPLACE}", f"an array of at most {_MOST_KINDS} kinds expected")
    for index, kind in enumerate(kinds):
        if not isinstance(kind, str) or not _KIND.fullmatch(kind):
            raise InvalidInput(
                f"additionalParams/{REPLACE}[{index}]", "the kind of a Kubernetes object expected: StatefulSet"
            )
    return tuple(kinds)


def _variables(before: Variables | None, original: Mapping[str, Any]) -> Variables | None:
    """Return the variables of the new package: the earlier ones, with those that the request gives. Raises InvalidInput."""
    given = requested_variables(original)
    return before if given is None else {**(before or {}), **given}
