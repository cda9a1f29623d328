"""The base of all drafts: the facts of a running operation, and its result for the instance."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import VimConnection
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_secrets import KeyRing, sealing
from kubevnfm_sol.granting import Grant
from kubevnfm_sol.lcm import OperationState
from kubevnfm_sol.resources import ExtVirtualLinkInfo, ResourceChanges
from kubevnfm_sol.vim import OPENSTACK
from pydantic import BaseModel, ConfigDict

from kubevnfm_lcm_api.lifecycle.core.dependencies import Provided, Withdrawn
from kubevnfm_lcm_api.lifecycle.core.granted_resources import Resources
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.revision import Inputs


class Draft(BaseModel):
    """All that is known so far of an operation; grows with each reply; stored with the occurrence."""

    # A misspelled field is an error where a draft is made; `from_document` ignores what another version has stored.
    # Rules are built when a draft is first used: they have most fields of all models.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    plan: ClassVar[str] = ""
    """The stored name of its sequence."""
    used_of_grant: ClassVar[frozenset[str]] = frozenset()
    """The attributes of a Grant that it reads."""

    vnf_instance_id: str

    def document(self, ring: KeyRing, secret_names: Collection[str] = ()) -> dict[str, Any]:
        """Return the draft as it is stored: secrets sealed, also those with these names."""
        return self.model_dump(mode="json", exclude_none=True, context=sealing(ring, secret_names))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read what ``document`` of this or an earlier version wrote."""
        return cls.model_validate(document, extra="ignore")

    @classmethod
    def has_stored(cls, document: Mapping[str, Any]) -> bool:
        """Return whether a document with the stored name of its sequence is one of this class."""
        return True

    @property
    def is_reversible(self) -> bool:
        """Whether the operation can be rolled back, for operations where that depends on the request (api.md 4.3)."""
        return True

    @property
    def vim_id(self) -> str | None:
        """The registered VIM that the resources are on, or go to; None without one, or if it is not registered."""
        vim = self._vim
        return vim.vim_id if vim is not None else None

    @property
    def is_on_openstack(self) -> bool:
        """Whether that VIM is an OpenStack for certain: its registered type was compared, and its registered access data are used."""
        vim = self._vim
        return vim is not None and vim.is_reference and vim.vim_type == OPENSTACK

    @property
    def _vim(self) -> VimConnection | None:
        # Not a field of the base: a modification has no VIM.
        return getattr(self, "vim", None)

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The thing that the operation takes away from other instances; None if it takes none."""
        return None

    @property
    def begins_use(self) -> tuple[Provided, ...]:
        """The things that the operation begins to use and that other instances may provide."""
        return ()

    @property
    def inputs(self) -> Inputs | None:
        """All that the objects of a CNF are made from after it; None: it changes nothing of that."""
        return None

    @property
    def notes(self) -> tuple[RequestWarning, ...]:
        """The warnings about the request, which the operation shows."""
        return ()

    @property
    def dst_vnfd_id(self) -> str | None:
        """The VNFD that the operation changes the VNF to; None: it keeps its own."""
        return None

    @property
    def vnf_snapshot_info_id(self) -> str | None:
        """The individual VNF snapshot that the operation is about; None: it is about none."""
        return None

    @property
    def deleted_volumes(self) -> tuple[str, ...]:
        """The volumes that it deletes for certain."""
        return ()

    def grant_resources(self, flavour: Flavour | None) -> Resources:
        """Return the resources that the operation adds, removes and changes; ``flavour``: None if it is made from none."""
        return Resources()

    def granted(self, grant: Grant, request: Mapping[str, Any]) -> Self:
        """Return the draft with the NFVO's grant applied; ``request``: the GrantRequest. Raises GrantUnusable.

        Entries of the grant override those with the same key (api.md 3.4).
        """
        return self

    def changes(self) -> ResourceChanges:
        """Return what the operation has added or removed so far, for ``resourceChanges``."""
        return ResourceChanges()

    def changed_connectivity(self) -> tuple[ExtVirtualLinkInfo, ...]:
        """Return the external links that the operation has added or changed so far."""
        return ()

    def removes_instance(self, state: OperationState) -> bool:
        """Return whether the instance is deleted when the operation ends in this state."""
        return False

    def final_attributes(self) -> dict[str, Any]:
        """Return further attributes of the occurrence that are true once the operation is COMPLETED."""
        return {}

    def completed(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance as it is when the operation is COMPLETED."""
        return instance

    def rolled_back(self, instance: InstanceRecord) -> InstanceRecord:
        """Return the instance as it is when the operation is ROLLED_BACK."""
        return instance

    def failed(self, instance: InstanceRecord, occurrence_id: str) -> InstanceRecord:
        """Return the instance as it is when the operation is FAILED: with the resources that really exist."""
        return instance
