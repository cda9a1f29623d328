"""The draft of a change of a CNF's package: its facts, and its result for the instance."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import PackageRef
from kubevnfm_events.compute_profiles import ComputeProfile
from kubevnfm_events.objects import ChartOrder, ClaimedVolume, NetworkAttachment, Variables, VduTarget
from kubevnfm_events.outputs import WantedOutput
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.resources import ScaleInfo
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.containers.changing import ChangeCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.releases import showing, with_management
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources, added, removed_pods
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.core.package_identity import package_modifications
from kubevnfm_lcm_api.lifecycle.core.revision import Inputs


class ReplaceCnfDraft(ChangeCnfDraft):
    """CHANGE_VNFPKG of a CNF. ``package`` is the new one, ``def_files`` are the files before."""

    plan: ClassVar[str] = "change_package_cnf"

    before_package: PackageRef
    """The earlier package: the rollback applies its objects again."""
    new_files: tuple[str, ...] = ()
    """Files of the new package: all that describes the CNF from now on, or, if images alone change, those that replace
    files with the same objects."""
    images_of: tuple[str, ...] = ()
    """The VDUs whose images alone change; empty: all objects are replaced."""
    replace_kinds: tuple[str, ...] = ()
    """The kinds of objects that may be deleted and created again, if a field of them cannot be changed."""
    is_rollback: bool = False
    """Whether the request asks for an earlier revision, at which some hooks run."""
    vdus_before: tuple[VduTarget, ...] = ()
    scale_status: tuple[ScaleInfo, ...] = ()
    """The scale levels in the new package."""
    max_scale_levels: tuple[ScaleInfo, ...] = ()
    parameters: SecretParams = Field(default_factory=dict)
    """additionalParams, the earlier ones merged with the request's."""
    variables_before: Variables | None = None
    order_artifact_before: str | None = None
    values_before: SecretParams = Field(default_factory=dict)
    compute_profiles_before: tuple[ComputeProfile, ...] = ()
    kubernetes_version_before: str | None = None
    networks_before: tuple[NetworkAttachment, ...] | None = None
    volumes_before: tuple[ClaimedVolume, ...] | None = None
    """The networks and volumes before; None: they stay."""
    holds_more: bool = False
    """Whether a change before this one may have left further ones."""
    outputs_before: tuple[WantedOutput, ...] = ()
    digest: str = ""
    """That of the objects with their variables filled in; empty if they are not known."""
    tasks: tuple[str, ...] = ()
    unused_values: tuple[RequestWarning, ...] = ()
    """The warnings about values of the request that name no variable of the package."""
    phases: dict[str, str] = Field(default_factory=dict)
    """Management driver by phase in the new package, as far as mgmt-executor runs it."""
    extensions: SecretParams = Field(default_factory=dict)
    vnf_configurable_properties: SecretParams = Field(default_factory=dict)
    vnf: dict[str, str] = Field(default_factory=dict)
    """Attributes of the instance that follow the package: vnfd_id, vnf_provider ..."""

    files: tuple[str, ...] = ()
    """The files that describe ``release``."""
    ignored_artifacts: tuple[str, ...] | None = None
    """The files of the new package that its order artifact does not list; None: the images alone change."""

    @property
    def notes(self) -> tuple[RequestWarning, ...]:
        """The values that are not used."""
        return self.unused_values

    @property
    def inputs(self) -> Inputs:
        """Those of the request."""
        return Inputs.model_construct(**{name: getattr(self, name) for name in Inputs.model_fields})

    @property
    def dst_vnfd_id(self) -> str | None:
        """That of the new package."""
        return self.package.vnfd_id

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """The pods that others replace; which ones do not change, only the comparison with the cluster shows."""
        pods = [pod for pod in self.before.pods if not self.images_of or pod.vdu_id in self.images_of]
        counts = {vdu.vdu_id: vdu.replicas for vdu in self.vdus if vdu.replicas is not None}
        present = Counter(pod.vdu_id for pod in pods)
        wanted = present if self.images_of else Counter({**present, **counts})
        return Resources(
            add=list(added(wanted, flavour, with_storage=False)), remove=list(removed_pods(pods, self.vim_key))
        )

    @property
    def order(self) -> ChartOrder:
        """The objects of the new package; of images alone, the files before."""
        return super().order.model_copy(update={} if self.images_of else {"def_files": self.new_files})

    @property
    def order_before(self) -> ChartOrder:
        """The objects of the earlier package."""
        before: dict[str, Any] = {
            "package": self.before_package,
            "vdus": self.vdus_before,
            "variables": self.variables_before,
            "order_artifact": self.order_artifact_before,
            "values": self.values_before,
            "compute_profiles": self.compute_profiles_before,
            "kubernetes_version": self.kubernetes_version_before,
            "networks": self.networks if self.networks_before is None else self.networks_before,
            "volumes": self.volumes if self.volumes_before is None else self.volumes_before,
            "outputs": self.outputs_before,
        }
        return super().order.model_copy(update=before)

    def replaced(self, release: Release, files: tuple[str, ...]) -> Self:
        """Return the draft with what exists now, and the files that describe it."""
        return self.model_copy(update={"release": release, "files": files})

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with the new package, and with the pods that run now."""
        done = showing(
            instance,
            self.release,
            self.package,
            self.vim_key,
            self.files,
            ignored=self.ignored_artifacts,
            scale_status=self.scale_status or None,
            max_scale_levels=self.max_scale_levels or None,
            additional_params=self.parameters or None,
        )
        done = done.with_vnf(
            **self.vnf,
            extensions={**done.vnf.extensions, **self.extensions},
            vnf_configurable_properties={**done.vnf.vnf_configurable_properties, **self.vnf_configurable_properties},
        )
        done = done.with_internals(
            parameters=self.parameters, instantiation_level_id=None, tasks=self.tasks, phases=self.phases,
            networks=self.networks, volumes=self.volumes, holds_more=False, outputs=self.outputs,
        )  # fmt: skip
        return done if self.release is None else with_management(done, self.release, self.vim_id)

    def rolled_back(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with the pods of the earlier package."""
        return showing(instance, self.release, self.before_package, self.vim_key, self.def_files)

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """Return the instance with the pods that were reported last; its package is the earlier one."""
        before, earlier = self.rolled_back(instance), self.order_before
        is_as_before = (self.networks, self.volumes) == (earlier.networks, earlier.volumes)
        return before if is_as_before else before.with_internals(holds_more=True)

    def final_attributes(self) -> dict[str, Any]:
        """Return the instance's attributes that the change of package has changed, as SOL003 names them."""
        modified = package_modifications(self.vnf, self.extensions, self.vnf_configurable_properties)
        return {"modifications_triggered_by_vnf_pkg_change": modified}
