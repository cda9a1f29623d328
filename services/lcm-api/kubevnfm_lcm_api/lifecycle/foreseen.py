"""Warnings that a package alone justifies: which requests will be refused, and which of its scripts will never run."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kubevnfm_csar.vnfd.model import Flavour, Vnfd
from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.containers.drivers import check_cnf_drivers
from kubevnfm_lcm_api.lifecycle.machines.drivers import check_machine_drivers
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_placement
from kubevnfm_lcm_api.lifecycle.scripts.drivers import NEVER_RUN, is_script


def foreseen(vnfd: Vnfd, hot_flavours: Collection[str]) -> Iterator[str]:
    """Yield the warnings of a package: what will be refused, and which scripts will never run.

    ``hot_flavours``: the flavours with a Base HOT.
    """
    yield from _certain_refusals(vnfd, hot_flavours)
    for flavour in vnfd.flavours.values():
        for phase, driver in flavour.phases.items():
            if phase in NEVER_RUN and is_script(driver):
                operation = phase.partition("_rollback_")[0]
                yield f"{flavour.file}: the script of {phase}, {driver.name}, is never run: {operation} cannot be rolled back"


def _certain_refusals(vnfd: Vnfd, hot_flavours: Collection[str]) -> Iterator[str]:
    """Yield why instantiate will be refused, for each flavour where the package alone decides so, whatever is requested."""
    for flavour_id, flavour in vnfd.flavours.items():
        as_cnf = _refusal_of_cnf(flavour)
        # Which of both it is, the VIM of the request decides: packages for Tacker describe containers as Vdu.Compute too.
        is_cnf = bool(flavour.vdus) and all(vdu.kind == "container" for vdu in flavour.vdus.values())
        as_machines = as_cnf if is_cnf else _refusal_of_machines(flavour, has_hot=flavour_id in hot_flavours)
        if as_cnf is not None and as_machines is not None:
            yield f"{flavour.file}: flavour {flavour_id} cannot be instantiated: {as_machines.reason}"


def _refusal_of_cnf(flavour: Flavour) -> Unprocessable | None:
    try:
        check_cnf_drivers(flavour)
    except Unprocessable as refusal:
        return refusal
    return None


def _refusal_of_machines(flavour: Flavour, *, has_hot: bool) -> Unprocessable | None:
    try:
        check_machine_drivers(flavour)
        if not has_hot:
            # Rules about zones are for an NFVO, if there is one.
            check_placement(flavour, has_zones=True)
    except Unprocessable as refusal:
        return refusal
    return None
