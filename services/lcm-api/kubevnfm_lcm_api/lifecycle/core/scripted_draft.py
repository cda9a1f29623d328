"""The common part of the operations whose VNFD maps phases to scripts of the package (sequences.md 6.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.mgmt import ScriptAnswer, ScriptEdit
from kubevnfm_events.stacks import StackResources
from kubevnfm_secrets import SecretParams, map_secrets
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.lcm import InstantiationState, VnfInstance
from kubevnfm_sol.vim import CREATED_BY
from pydantic import Field

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources
from kubevnfm_lcm_api.lifecycle.core.granting import granted_connections, granted_vim
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord

Moment = Literal["before", "completed", "rolled_back"]
"""As the instance was, or will be at the end of the operation."""


class ScriptedDraft(Draft):
    """An operation that runs scripts of the package at its beginning and at its end, and the same in its rollback."""

    package: PackageRef | None = None
    """None: version 0.1.0 accepted the request."""
    scripts: dict[str, str] = Field(default_factory=dict)
    """The package's file by phase of this operation (``scale_start``, ``scale_rollback_end``), as the VNFD maps them; for a
    driver class of Tacker's v1 ``file::Class``."""
    script_request: SecretParams = Field(default_factory=dict)
    """The operation's request in v2 form."""
    script_data: SecretParams = Field(default_factory=dict)
    """``user_script_err_handling_data``: what scripts want to find again when they run after a failure."""
    script_edits: tuple[ScriptEdit, ...] = ()
    """The values of the instance that scripts have changed so far, in order."""
    new_package: PackageRef | None = None
    """A modification: the package that it changes to."""
    instance: SecretParams = Field(default_factory=dict)
    """VnfInstance in v2 form, as it was before."""
    grant_request: SecretParams = Field(default_factory=dict)
    """The resources that are added and removed, in SOL003 v3 form; the acceptance adds it."""
    grant: SecretParams = Field(default_factory=dict)
    """Grant of an external NFVO, in SOL003 v3 form."""

    @property
    def stacks(self) -> tuple[StackResources | None, StackResources | None]:
        """The stack before the operation and its present state; None: there is none, or it is not known yet."""
        return None, None

    @property
    def reads_grant_request(self) -> bool:
        """Whether code of the package gets the grant request."""
        return bool(self.scripts)

    @property
    def flavour_for_package(self) -> str | None:
        """The flavour that the grant request for code of the package names also if SOL003 does not; None: as SOL003."""
        return None

    def resources_for_package(self, flavour: Flavour) -> Resources:
        """Return the resources that the grant request for code of the package has."""
        return self.grant_resources(flavour)

    @property
    def registers_vim(self) -> bool:
        """Whether a driver class has created a VIM that is to be registered."""
        return False

    @property
    def registered_vim_name(self) -> str | None:
        """The VIM that the cluster which is built again is registered as; None: there is none yet, or none is built."""
        return None

    @property
    def reads_admin(self) -> bool:
        """Whether a script has built a cluster and has left no VIM for it."""
        return False

    def with_script(self, answer: ScriptAnswer) -> Self:
        """Return the draft with what a script has answered."""
        return self.model_copy(
            update={
                "script_edits": (*self.script_edits, *answer.edits),
                "script_data": {**self.script_data, **answer.data},
            }
        )

    def instance_at(self, moment: Moment) -> dict[str, Any]:
        """Return the VnfInstance in v2 form, with what scripts have changed so far."""
        record = InstanceRecord(vnf=VnfInstance.model_validate(self.instance), created_at="", updated_at="")
        if moment == "completed":
            record = self.completed(record)
        elif moment == "rolled_back":
            record = self.rolled_back(record)
        return self.with_changes(record).vnf.model_dump(by_alias=True, exclude_none=True)

    def with_changes(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance with what scripts have changed."""
        if not self.script_edits:
            return instance
        # A copy: the dump shares its free attributes with the instance.
        body = map_secrets(instance.vnf.model_dump(by_alias=True, exclude_none=True), lambda secret: secret)
        for edit in self.script_edits:
            if edit.path[:1] != ("vimConnectionInfo",) or _is_for_own_cluster(edit, instance.vnf):
                _apply(body, edit)
        return instance.model_copy(update={"vnf": VnfInstance.model_validate(body)})


class OnVimDraft(ScriptedDraft):
    """An operation on the resources of one VIM."""

    used_of_grant: ClassVar[frozenset[str]] = frozenset({"vimConnectionInfo"})

    vim_key: str
    """The entry of vimConnectionInfo for the VIM."""
    vim: VimConnection

    def granted(self, grant: Grant, request: Mapping[str, Any]) -> Self:
        """Scripts get the grant, and its access data of the VIM are used."""
        changes: dict[str, Any] = {"grant": grant.model_dump(by_alias=True, exclude_none=True)} if self.scripts else {}
        given = granted_connections(grant, None)
        if self.vim_key in given:
            changes["vim"] = granted_vim(given[self.vim_key], self.vim, self.vim_key)
        return self.model_copy(update=changes)


def _is_for_own_cluster(edit: ScriptEdit, vnf: VnfInstance) -> bool:
    """Return whether an edit of vimConnectionInfo adds an entry, or takes that of the instance's own cluster out.

    mgmt-executor refuses others; operations that began with version 0.1.0 may have some. A VNF that is not instantiated gets no entry
    of a script: its next instantiate would be on that VIM, which no request has named.
    """
    present = vnf.vim_connection_info.get(edit.path[1]) if len(edit.path) == 2 else None
    if present is not None:
        return not edit.change and present.extra.get(CREATED_BY) == vnf.id
    return len(edit.path) == 2 and vnf.instantiation_state is InstantiationState.INSTANTIATED


def _apply(body: dict[str, Any], edit: ScriptEdit) -> None:
    """Change the value in place; do nothing for a machine, or a part of the instance, that is gone."""
    *way, last = edit.path
    place: Any = body
    for name in way:
        if isinstance(place, list | tuple):
            place = next((one for one in place if one.get("id") == name), None)
        elif name in ("instantiatedVnfInfo", "vnfcResourceInfo"):
            place = place.get(name)
        else:
            place = place.setdefault(name, {})
        if place is None:
            return
    # None: of an executor that does not send it as removed.
    if edit.change.get("value") is not None:
        place[last] = edit.change["value"]
    else:
        place.pop(last, None)
