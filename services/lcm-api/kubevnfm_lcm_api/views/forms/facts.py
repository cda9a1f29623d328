"""The facts that a form is made from."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_csar.artifact_order import find_order
from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.user_data_inputs import LARGEST, inputs_of
from kubevnfm_csar.values_schema import ValuesSchema
from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_kit.errors import Conflict, InvalidInput, Unprocessable, VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_sol.lcm import InstantiationState
from kubevnfm_sol.resources import InstantiatedVnfInfo
from kubevnfm_sol.vim import long_vim_type

from kubevnfm_lcm_api.lifecycle.containers.ordering import order_in
from kubevnfm_lcm_api.lifecycle.core.claim_errors import wrong_state
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.kind import TaskUnsupported
from kubevnfm_lcm_api.lifecycle.core.scale_levels import levels_of
from kubevnfm_lcm_api.lifecycle.core.vim_types import check_objects, vim_types
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_bootable
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices

_MOST_MODULES: Final = 5
"""Modules of a package that are searched for what they read of a request."""


@dataclass(frozen=True)
class FlavourFacts:
    """A flavour of the package."""

    flavour: Flavour
    hot: BaseHot | None
    vim_types: tuple[str, ...]
    """The types of VIM that its resources can be on: both, if the package does not say."""


@dataclass(frozen=True)
class FormFacts:
    """All that a form is made from."""

    vnfd: Vnfd
    flavours: Sequence[FlavourFacts]
    """Those of the package; of an instance that is INSTANTIATED, its own alone, unless the form is to choose one."""
    files: frozenset[str]
    """The paths in the package."""
    vims: Sequence[JsonMapping] | None
    """The registered VIMs, as vim-registry shows them; None: it does not answer."""
    has_order: bool = False
    """Whether the objects of a CNF have an order artifact."""
    values: ValuesSchema | None = None
    """The schema of its values."""
    order_values: JsonMapping = field(default_factory=dict)
    """The values that the order gives."""
    inputs: JsonMapping = field(default_factory=dict)
    """The names of additionalParams that user data of the package are seen to read, with their defaults."""
    record: InstanceRecord | None = None
    """The instance; None: there is none yet."""

    @property
    def info(self) -> InstantiatedVnfInfo | None:
        """The view of an instance that is INSTANTIATED; None: it is not."""
        return self.record.vnf.instantiated_vnf_info if self.record is not None else None

    @property
    def scale_levels(self) -> Mapping[str, int]:
        """The present level of each aspect."""
        return levels_of(self.info) if self.info is not None else {}

    @property
    def own(self) -> FlavourFacts:
        """The flavour of an instance that is INSTANTIATED."""
        assert self.info is not None
        return next(one for one in self.flavours if one.flavour.flavour_id == self.info.flavour_id)

    def vims_of(self, types: Sequence[str]) -> Sequence[JsonMapping]:
        """Return the registered VIMs of these types, the default one first."""
        found = [each for each in self.vims or () if long_vim_type(str(each["type"])) in types]
        return sorted(found, key=lambda each: (not each.get("is_default"), str(each["name"]), str(each["id"])))


async def read_facts(
    on: RequestServices,
    vims: Sequence[JsonMapping] | None,
    package_id: str,
    instance: InstanceRecord | None,
    *,
    has_parameters: bool,
) -> FormFacts:
    """Return the facts. Raises NotFound; Conflict for a package that is not ONBOARDED.

    ``has_parameters``: whether the form describes the parameters of an instantiation; without them, neither the order nor the user data
    of the package is read.
    """
    package = await on.packages.reference(package_id)
    if not package.vnfd_id:
        raise Conflict(f"the package {package_id} is not ONBOARDED")
    vnfd = await on.packages.vnfd(package.package_id, package.checksum)
    files = await on.packages.file_names(package.package_id)
    order = None
    # A request for a package whose order cannot be read is refused with the reason.
    with suppress(VnfmError):
        name = find_order(files) if has_parameters else None
        order = await order_in(on.packages, package_id, name, files) if name is not None else None
    flavours = []
    for flavour in vnfd.flavours.values():
        hot = await on.packages.base_hot(package.package_id, flavour.flavour_id)
        flavours.append(FlavourFacts(flavour, hot, vim_types(flavour, hot, files)))
    inputs = await _user_data_inputs(on, package.package_id, files, vnfd) if has_parameters else {}
    return FormFacts(
        vnfd,
        flavours,
        files,
        vims,
        has_order=order is not None,
        values=order.schema if order is not None else None,
        order_values=order.values if order is not None else {},
        inputs=inputs,
        record=instance,
    )


async def _user_data_inputs(on: RequestServices, package_id: str, files: frozenset[str], vnfd: Vnfd) -> JsonMapping:
    """Return what the modules of a package, beside those of its drivers, read of additionalParams."""
    drivers = {driver.file for flavour in vnfd.flavours.values() for driver in flavour.drivers}
    paths = sorted(path for path in files if path.endswith(".py") and path not in drivers)[:_MOST_MODULES]
    if not paths:
        return {}
    sources = await on.packages.files(package_id, paths, limit_bytes=LARGEST)
    # In a thread: the parser of Python takes a while for a long module.
    found = await asyncio.to_thread(lambda: [inputs_of(sources[path]) for path in paths if path in sources])
    return {name: default for one in found for name, default in one.items()}


def check_task(on: RequestServices, record: InstanceRecord, task: str) -> None:
    """Raise TaskUnsupported for a task that the instance does not have, Conflict if it is not INSTANTIATED."""
    if record.vnf.instantiation_state is not InstantiationState.INSTANTIATED:
        raise wrong_state(record, InstantiationState.INSTANTIATED)
    if task != "terminate" and task not in record.internals.tasks:
        raise TaskUnsupported(task, on.kind_of(record).why_unsupported(record, task))


def check_package(record: InstanceRecord, package_id: str) -> None:
    """Raise InvalidInput for an instance of another package."""
    if record.vnf.vnf_pkg_id != package_id:
        raise InvalidInput("instance", f"an instance of this package expected: it is of {record.vnf.vnf_pkg_id}")


def check_new_package(on: RequestServices, facts: FormFacts) -> None:
    """Raise Unprocessable, as the request, for a package that lacks the flavour of the VNF, or has nothing that it is made from."""
    assert facts.record is not None
    assert facts.info is not None
    own = next((one for one in facts.flavours if one.flavour.flavour_id == facts.info.flavour_id), None)
    if own is None:
        raise Unprocessable(
            "vnfdId", f"the VNF has flavour {facts.info.flavour_id}, and VNFD {facts.vnfd.vnfd_id} does not"
        )
    if facts.record.stack is None:
        check_objects("vnfdId", own.flavour, own.hot, facts.files)
    elif not on.is_granted_outside:
        check_bootable("vnfdId", own.flavour, own.hot)
