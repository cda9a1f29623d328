"""Modification of a CNF that changes its configuration and images."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.lcm import VnfInfoModificationRequest

from kubevnfm_lcm_api.lifecycle.containers.instantiating import manifest_files
from kubevnfm_lcm_api.lifecycle.containers.modifying import ModifyCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.modifying import ModifyScriptedDraft
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.request_parameters import CHART, RELEASES
from kubevnfm_lcm_api.lifecycle.scripts.drivers import CONTAINER_UPDATE, driven_phases

CONFIG_FILES: Final = "configmap_secret_paths"
"""In a modification's metadata, as Tacker names it: the files with changed ConfigMaps and Secrets."""


async def modified_cnf(
    packages: PackageCatalogue, vnf: CnfUnderChange, common: ModifyScriptedDraft, request: VnfInfoModificationRequest
) -> ModifyCnfDraft | None:
    """Return the draft of a change of configuration and images; None if the request or the VNFD asks for none."""
    package = common.new_package
    named = (request.metadata or {}).get(CONFIG_FILES)
    if driven_phases(vnf.flavour).get("modify_information_end") != CONTAINER_UPDATE or (package is None and not named):
        return None
    if named is not None and vnf.order_artifact is not None:
        why = f"the objects of the CNF are those that {vnf.order_artifact} lists: leave it out, and change the package or its values"
        raise Unprocessable(f"metadata/{CONFIG_FILES}", why)
    files = await packages.file_names((package or common.package).package_id)
    configs = manifest_files(named, files, place=f"metadata/{CONFIG_FILES}") if named is not None else ()
    parameters = vnf.record.internals.parameters
    if CHART in parameters or RELEASES in parameters:
        place = f"metadata/{CONFIG_FILES}" if named is not None else "vnfdId"
        raise Unprocessable(place, "the CNF is a Helm chart, and has no manifests that could be replaced")
    vnf.check_files(files, configs)
    return ModifyCnfDraft(
        **{**vars(common), **vars(vnf.order)},
        vim_key=vnf.vim_key,
        config_files=configs,
        wait_timeout_s=parameters.get("wait_timeout"),
        before=vnf.release,
    )
