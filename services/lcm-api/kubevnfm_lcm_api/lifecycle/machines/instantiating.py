"""The draft of an InstantiateVnfRequest for a VM-based VNF, such as a Kubernetes cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kubevnfm_clients.ports import Vims
from kubevnfm_cluster.parameters import CLUSTER
from kubevnfm_cluster.request import with_key_pair
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events.mgmt import INSTANTIATE_END
from kubevnfm_secrets import hide
from kubevnfm_sol.lcm import InstantiateVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.machines.asked_links import LinkRules, check_links, check_managed_links
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.drivers import RoleName, check_machine_drivers, is_registry, machine_phases
from kubevnfm_lcm_api.lifecycle.machines.group_sizes import check_new_groups, check_numbers
from kubevnfm_lcm_api.lifecycle.machines.package_fit import (
    check_bootable,
    check_fed,
    check_hot_values,
    check_placement,
    check_subnets,
    check_user_data,
    named_user_data,
)
from kubevnfm_lcm_api.lifecycle.machines.registry_vnf import RegistryVnf
from kubevnfm_lcm_api.lifecycle.machines.roles import ROLES, RequestedMachines
from kubevnfm_lcm_api.lifecycle.scripts.asked import requested_instance, script_fields
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of

_LEVEL: Final = "instantiationLevelId"


async def instantiated_machines(
    common: InstantiateDraft,
    record: InstanceRecord,
    flavour: Flavour,
    asked: Asked[InstantiateVnfRequest],
    *,
    packages: PackageCatalogue,
    vims: Vims,
    is_granted_outside: bool,
) -> InstantiateVmDraft:
    """Return the draft; ``common``: what it has in common with the draft of a CNF.

    For a flavour without Base HOT, infra-openstack translates the VNFD's topology, also for a cluster.
    ``is_granted_outside``: whether an NFVO grants the operations, and can add virtual links.
    Raises: InvalidInput and Unprocessable naming the parameter; Conflict when the cluster's VIM name is taken.
    """
    package = common.package
    request = asked.request
    parameters = request.additional_params
    pair = with_key_pair(parameters, comment=stack_name(record.vnf.id))
    if pair is not None:
        parameters = dict(pair.additional_params)
        common = common.model_copy(update={"parameters": parameters})
        # User data need the public key only.
        named = {**asked.original["additionalParams"], pair.parameter: pair.public_key}
        asked = replace(asked, original={**asked.original, "additionalParams": named})
    names = await packages.file_names(package.package_id)
    check_machine_drivers(flavour)
    phases = machine_phases(flavour)
    user_data = named_user_data(parameters, names)
    base_hot = await packages.base_hot(package.package_id, flavour.flavour_id)
    rules = LinkRules(
        flavour,
        base_hot,
        vim_ids=() if is_granted_outside else {common.vim_key, *([common.vim_id] if common.vim_id is not None else [])},
        has_user_data=user_data is not None,
        counts=flavour.initial_counts(request.instantiation_level_id),
    )
    check_links(request.ext_virtual_links, rules)
    check_managed_links(request.ext_managed_virtual_links, rules)
    if base_hot is None:
        check_placement(flavour, has_zones=is_granted_outside)
        check_subnets("flavourId", flavour, [one.vnf_virtual_link_desc_id for one in request.ext_managed_virtual_links])
    check_numbers(_LEVEL, flavour, present={}, wanted=rules.counts)
    if base_hot is not None and request.instantiation_level_id is not None:
        check_new_groups(_LEVEL, base_hot, parameters, wanted=rules.counts, has_user_data=user_data is not None)
    if user_data is None and base_hot is not None:
        check_hot_values(base_hot, parameters)
    if user_data is None and not is_granted_outside:
        check_bootable("flavourId", flavour, base_hot)
        check_fed(common.ext_virtual_links, flavour, base_hot, rules.counts, parameters)
    scripts = scripts_of(flavour, OperationType.INSTANTIATE)
    is_cluster = INSTANTIATE_END in phases or (INSTANTIATE_END in scripts and CLUSTER in parameters)
    name: RoleName | None = "registry" if is_registry(flavour) else "cluster" if is_cluster else None
    requested = requested_instance(record.vnf, common)
    draft = InstantiateVmDraft(
        **{
            **vars(common),
            **script_fields(scripts, asked, requested),
            "instance": requested.model_dump(by_alias=True, exclude_none=True),
        },
        stack_name=stack_name(record.vnf.id),
        request=hide(asked.original),
        user_data=user_data,
        phases=phases,
        registry=RegistryVnf.from_phases(phases, INSTANTIATE_END, parameters),
    )
    await check_user_data(packages, draft)
    return await ROLES[name].instantiated(draft, RequestedMachines(packages, vims, flavour, base_hot, names))


def stack_name(instance_id: str) -> str:
    """Return the name of the instance's stack, as in Tacker v2 and its guides: operators find the stack by this name."""
    return f"vnf-{instance_id}"
