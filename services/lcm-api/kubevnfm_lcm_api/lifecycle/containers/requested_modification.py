"""Modification of a CNF that changes its configuration and images."""

from __future__ import annotations

from typing import Final

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import VimConnection
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.lcm import VnfInfoModificationRequest
from kubevnfm_sol.vim import VimConnectionInfo

from kubevnfm_lcm_api.lifecycle.containers.instantiating import manifest_files, objects_order
from kubevnfm_lcm_api.lifecycle.containers.modifying import ModifyCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.variables import stored_variables
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.modifying import ModifyScriptedFields
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.request_parameters import CHART, DEF_FILES
from kubevnfm_lcm_api.lifecycle.core.scale_levels import declared_counts, levels_of
from kubevnfm_lcm_api.lifecycle.scripts.drivers import CONTAINER_UPDATE, driven_phases

CONFIG_FILES: Final = "configmap_secret_paths"
"""In a modification's metadata, as Tacker names it: the files with changed ConfigMaps and Secrets."""


async def modified_cnf(
    packages: PackageCatalogue,
    fields: ModifyScriptedFields,
    record: InstanceRecord,
    flavour: Flavour,
    request: VnfInfoModificationRequest,
) -> ModifyCnfDraft | None:
    """Return the draft of a change of configuration and images; None if the request or the VNFD asks for none."""
    info, deployment = record.vnf.instantiated_vnf_info, record.release
    if info is None or deployment is None or deployment.release is None:
        return None
    package = fields["new_package"]
    named = (request.metadata or {}).get(CONFIG_FILES)
    if driven_phases(flavour).get("modify_information_end") != CONTAINER_UPDATE or (package is None and not named):
        return None
    files = await packages.file_names((package or fields["package"]).package_id)
    configs = manifest_files(named, files, place=f"metadata/{CONFIG_FILES}") if named is not None else ()
    parameters = record.internals.parameters
    if CHART in parameters:
        place = f"metadata/{CONFIG_FILES}" if named is not None else "vnfdId"
        raise Unprocessable(place, "the CNF is a Helm chart, and has no manifests that could be replaced")
    def_files = tuple((info.metadata or {}).get(DEF_FILES) or ())
    missing = [name for name in def_files if "://" not in name and name not in files]
    # Files that changed ones replace need not be there; infra-k8s, which reads them, finds out which these are.
    if len(missing) > len(configs):
        raise Unprocessable("vnfdId", f"the package lacks {', '.join(missing)}, which the CNF was made from")
    connections = record.vnf.vim_connection_info if fields["vim_connections"] is None else fields["vim_connections"]
    connection = connections.get(deployment.vim_key)
    if connection is None:
        raise Unprocessable("vimConnectionInfo", f"no entry {deployment.vim_key}, which is the CNF's cluster")
    order = objects_order(
        parameters,
        flavour,
        declared_counts(flavour, record.internals.instantiation_level_id, levels_of(info)),
        instance_id=record.vnf.id,
        package=fields["package"],
        vim=VimConnection(**{name: getattr(connection, name) for name in VimConnectionInfo.model_fields}),
        def_files=def_files,
        namespace=deployment.release.namespace,
        variables=stored_variables(parameters),
    )
    return ModifyCnfDraft(
        **{**fields, **vars(order)},
        vim_key=deployment.vim_key,
        config_files=configs,
        wait_timeout_s=parameters.get("wait_timeout"),
        before=deployment.release,
    )
