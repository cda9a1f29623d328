"""The draft of an InstantiateVnfRequest for a VM-based VNF, such as a Kubernetes cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kubevnfm_clients.ports import Vims
from kubevnfm_cluster import CLUSTER, ROOT, with_key_pair
from kubevnfm_csar import Flavour
from kubevnfm_events.infra import UserData
from kubevnfm_events.mgmt import INSTANTIATE_END
from kubevnfm_kit.errors import Conflict, InvalidInput, Unprocessable
from kubevnfm_secrets import hide
from kubevnfm_sol.lcm import InstantiateVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.clusters.drivers import check_machine_drivers, is_registry, machine_phases, scripts_of
from kubevnfm_lcm_api.lifecycle.clusters.kuryr import has_kuryr
from kubevnfm_lcm_api.lifecycle.clusters.parameters import CheckedCluster, check_cluster_parameters
from kubevnfm_lcm_api.lifecycle.clusters.registries import check_certificates, check_registry
from kubevnfm_lcm_api.lifecycle.clusters.registry_vnf import RegistryVnf
from kubevnfm_lcm_api.lifecycle.clusters.volumes import check_manifests
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.machines.drafts import InstantiateVmDraft
from kubevnfm_lcm_api.lifecycle.machines.package_fit import check_linked, check_links, check_placement, check_user_data
from kubevnfm_lcm_api.lifecycle.scripts.asked import requested_instance, with_scripts


class VmDrafts:
    """Makes the drafts of VM-based VNFs."""

    def __init__(self, *, packages: PackageCatalogue, vims: Vims, is_granted_outside: bool) -> None:
        """``is_granted_outside``: whether an NFVO grants the operations, and can add virtual links."""
        self._packages, self._vims, self._is_granted_outside = packages, vims, is_granted_outside

    async def draft(
        self,
        common: InstantiateDraft,
        record: InstanceRecord,
        flavour: Flavour,
        request: InstantiateVnfRequest,
        original: Mapping[str, Any],
    ) -> InstantiateVmDraft:
        """Return the draft; ``common``: what it has in common with the draft of a CNF.

        For a flavour without Base HOT, infra-openstack translates the VNFD's topology, also for a cluster.
        Raises: InvalidInput and Unprocessable naming the parameter; Conflict when the cluster's VIM name is taken.
        """
        package = common.package
        parameters = request.additional_params
        pair = with_key_pair(parameters, comment=stack_name(record.vnf.id))
        if pair is not None:
            parameters = dict(pair.additional_params)
            common = common.model_copy(update={"parameters": parameters})
            # User data need the public key only.
            named = {**original["additionalParams"], pair.parameter: pair.public_key}
            original = {**original, "additionalParams": named}
        names = await self._packages.file_names(package.package_id)
        check_machine_drivers(flavour)
        phases = machine_phases(flavour)
        user_data = named_user_data(parameters, names)
        base_hot = await self._packages.base_hot(package.package_id, flavour.flavour_id)
        await check_user_data(self._packages, package, flavour.flavour_id, user_data)
        check_links(request.ext_virtual_links, flavour, base_hot)
        if base_hot is None:
            check_placement(flavour, has_zones=self._is_granted_outside)
        if base_hot is None and not self._is_granted_outside:
            counts = flavour.initial_counts(request.instantiation_level_id)
            check_linked(common.ext_virtual_links, flavour, counts)
        cluster: CheckedCluster | None = None
        cluster_vim_name: str | None = None
        scripts = scripts_of(flavour, OperationType.INSTANTIATE)
        registry = RegistryVnf.from_phases(phases, INSTANTIATE_END, parameters)
        if is_registry(flavour):
            await check_registry(
                self._packages, package, parameters, flavour, base_hot, level_id=request.instantiation_level_id
            )
        elif INSTANTIATE_END in phases or (INSTANTIATE_END in scripts and CLUSTER in parameters):
            try:
                # In a thread, because a private key may have to be opened with its passphrase.
                cluster = await asyncio.to_thread(
                    check_cluster_parameters,
                    parameters,
                    flavour=flavour,
                    base_hot=base_hot,
                    file_names=names,
                    api_version=common.api_version,
                    has_user_data=user_data is not None,
                    instantiation_level_id=request.instantiation_level_id,
                    has_kuryr_driver=has_kuryr(phases),
                )
            except (InvalidInput, Unprocessable):
                # A script may have parameters of its own under this name. Then no VIM is made of what it builds.
                if INSTANTIATE_END in phases:
                    raise
        if cluster is not None:
            if INSTANTIATE_END in phases:
                await check_certificates(self._packages, package, cluster.parameters)
                await check_manifests(self._packages, package, cluster.parameters)
            cluster_vim_name = await self._vim_name(cluster, record.vnf.id)
        return InstantiateVmDraft(
            **{
                **vars(with_scripts(common, scripts, request, original)),
                "instance": requested_instance(record.vnf, common),
            },
            stack_name=stack_name(record.vnf.id),
            request=hide(original),
            user_data=user_data,
            phases=phases,
            cluster_vim_name=cluster_vim_name,
            cluster_parameters=cluster.parameters if cluster is not None else None,
            registry=registry,
            max_nodes=cluster.max_nodes if cluster is not None else None,
            masters=cluster.masters if cluster is not None else 1,
        )

    async def _vim_name(self, cluster: CheckedCluster, instance_id: str) -> str:
        name = cluster.parameters.vim_name or f"kubernetes_vim_{instance_id}"
        for vim in await self._vims.list({"name": [name]}):
            if vim.get("extra", {}).get("vnf_instance_id") != instance_id:
                raise Conflict(f"{ROOT}/vim_name: a VIM named {name} is registered already")
        return name


def stack_name(instance_id: str) -> str:
    """Return the name of the instance's stack, as in Tacker v2 and its guides: operators find the stack by this name."""
    return f"vnf-{instance_id}"


def named_user_data(parameters: Mapping[str, Any], files: frozenset[str]) -> UserData | None:
    """Return the user data class that the request names (sequences.md 2.1). Raises InvalidInput, Unprocessable."""
    path, class_name = parameters.get("lcm-operation-user-data"), parameters.get("lcm-operation-user-data-class")
    if path is None and class_name is None:
        return None
    for name, value in (("lcm-operation-user-data", path), ("lcm-operation-user-data-class", class_name)):
        if not isinstance(value, str) or not value:
            raise InvalidInput(
                f"additionalParams/{name}", "both of lcm-operation-user-data and -class, or none, expected"
            )
    normal = str(path).removeprefix("./")
    if ".." in normal.split("/") or normal.startswith("/") or not normal.endswith(".py"):
        raise InvalidInput(
            "additionalParams/lcm-operation-user-data", "a path inside the package, ending in .py, expected"
        )
    if normal not in files:
        raise Unprocessable("additionalParams/lcm-operation-user-data", f"the package has no file {normal}")
    if not str(class_name).isidentifier():
        raise InvalidInput("additionalParams/lcm-operation-user-data-class", "a Python class name expected")
    return UserData(path=normal, class_name=str(class_name))
