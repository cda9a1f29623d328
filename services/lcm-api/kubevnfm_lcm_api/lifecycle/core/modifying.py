"""The drafts of the operations on an instantiated VNF: their facts, and their result for the instance."""

from __future__ import annotations

from typing import Any, ClassVar

from kubevnfm_events import PackageRef
from kubevnfm_events.stacks import StackResources
from kubevnfm_secrets import SecretParams
from kubevnfm_sol.resources import ScaleInfo
from kubevnfm_sol.vim import VimConnectionInfo
from pydantic import BaseModel, ConfigDict, Field

from kubevnfm_lcm_api.lifecycle.core.dependencies import Provided
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.revision import Inputs
from kubevnfm_lcm_api.lifecycle.core.scripted_draft import ScriptedDraft


class CarriedStack(BaseModel):
    """A stack that stays as it is under another package: what the VNF shows and supports by the new descriptor."""

    model_config = ConfigDict(frozen=True)

    left_package: PackageRef | None = None
    """The package whose template the stack has; None: the new one."""
    scale_status: tuple[ScaleInfo, ...] = ()
    max_scale_levels: tuple[ScaleInfo, ...] = ()
    external_cps: dict[str, str] = Field(default_factory=dict)
    tasks: tuple[str, ...] = ()

    def on(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with these facts."""
        info = instance.vnf.instantiated_vnf_info
        assert info is not None
        levels = {"scale_status": self.scale_status or None, "max_scale_levels": self.max_scale_levels or None}
        changed = instance.with_vnf(instantiated_vnf_info=info.model_copy(update=levels))
        changed = changed.with_internals(external_cps=self.external_cps, tasks=self.tasks)
        return changed.with_left_package(self.left_package)


class ModifyDraft(Draft):
    """MODIFY_INFO: no service takes part; the instance's document changes at the end."""

    plan: ClassVar[str] = "modify_info"
    reads_grant_request: ClassVar[bool] = False
    """A modification has no grant."""

    vnf: dict[str, str] = Field(default_factory=dict)
    """The wanted simple attributes of the instance."""
    removed: tuple[str, ...] = ()
    """Simple attributes that are removed."""
    free: dict[str, SecretParams] = Field(default_factory=dict)
    """The wanted KeyValuePairs of the instance, by attribute."""
    vim_connections: dict[str, VimConnectionInfo] | None = None
    new_vim_ids: tuple[str, ...] = ()
    """The VIMs that its resources are on according to this modification only."""
    vnfc_properties: dict[str, SecretParams] = Field(default_factory=dict)
    """The wanted vnfcConfigurableProperties by vnfcInfo id."""
    changed: SecretParams = Field(default_factory=dict)
    """VnfInfoModifications: the requested changes, in v2 form."""
    carried: CarriedStack | None = None
    """If the package of a VNF of machines changes."""
    new_inputs: Inputs | None = None
    """Those of the objects of a CNF of the multi-cloud API, if the package changes."""

    @property
    def inputs(self) -> Inputs | None:
        """Those with the other package."""
        return self.new_inputs

    @property
    def begins_use(self) -> tuple[Provided, ...]:
        """The VIMs, which the clusters of other instances may be."""
        return (Provided("cluster", self.new_vim_ids),) if self.new_vim_ids else ()

    @property
    def dst_vnfd_id(self) -> str | None:
        """That of the package that the request changes to."""
        return self.vnf.get("vnfd_id")

    def final_attributes(self) -> dict[str, Any]:
        """Return the changes."""
        return {"changed_info": self.changed}

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with its information changed."""
        changed = instance.with_vnf(**self.vnf, **self.free, **dict.fromkeys(self.removed))
        if self.carried is not None:
            changed = self.carried.on(changed)
        if self.vim_connections is not None:
            changed = changed.with_vnf(vim_connection_info=self.vim_connections)
        info = changed.vnf.instantiated_vnf_info
        if info is not None and self.vnfc_properties:
            vnfcs = tuple(
                one.model_copy(update={"vnfc_configurable_properties": self.vnfc_properties[one.id]})
                if one.id in self.vnfc_properties
                else one
                for one in info.vnfc_info
            )
            changed = changed.with_vnf(instantiated_vnf_info=info.model_copy(update={"vnfc_info": vnfcs}))
        return changed


class ModifyScriptedDraft(ModifyDraft, ScriptedDraft):
    """MODIFY_INFO of a VNF whose VNFD maps the modification to scripts."""

    plan: ClassVar[str] = "modify_scripted"

    package: PackageRef
    """The package before the modification, whose scripts run."""
    resources: StackResources | None = None
    """The stack, which stays; None: a CNF."""

    @property
    def stacks(self) -> tuple[StackResources | None, StackResources | None]:
        """The stack stays."""
        return self.resources, self.resources
