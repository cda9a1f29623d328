"""A workload cluster that Cluster API builds: its parameters, and what its instance stores (capi.md chapters 7 and 11)."""

from __future__ import annotations

from typing import Final, Literal

from kubevnfm_events.capi import ClusterStage, ClusterTimeouts, MachineFacts
from kubevnfm_events.credentials import CredentialsMode, CredentialsSent, WorkloadCluster
from kubevnfm_events.objects import VduTarget
from kubevnfm_events.vim import VimRegistered
from kubevnfm_sol.base import SolType
from kubevnfm_sol.vim import KUBERNETES, VimConnectionInfo
from pydantic import BaseModel, ConfigDict, Field

CredentialsSenderKind = Literal["driver", "package"]


class CapiParameters(BaseModel):
    """``additionalParams.capi``, the table of capi.md chapter 7."""

    model_config = ConfigDict(frozen=True)

    cluster_name: str | None = None
    """None: the only Cluster of the files."""
    ready: ClusterStage = "available"
    addon_def_files: tuple[str, ...] = ()
    credentials: CredentialsMode = "service_account"
    cluster_role: str = "cluster-admin"
    callback_url: str | None = None
    register_vim: bool = True
    vim_name: str | None = None
    """None: the name of the cluster with the beginning of the instance's id."""
    vim_default: bool = False
    sender: CredentialsSenderKind = "driver"
    """``package``: the script of ``instantiate_end`` takes the place of the driver ``capi-credentials``, and that of
    ``terminate_start`` if there is one."""
    timeouts: ClusterTimeouts = ClusterTimeouts()
    openstack_vim_id: str | None = None
    """The registered OpenStack whose login becomes the Secret that the objects of the cluster name; None: the package has it."""


def is_of_control_plane(machine: MachineFacts) -> bool:
    """Return whether the Machine is one of the control plane."""
    return machine.owner_kind.endswith("ControlPlane")


class WorkloadInternals(SolType):
    """Facts that an instance stores about its workload cluster, for later operations."""

    kind: Literal["workload"] = "workload"
    capi: CapiParameters
    cluster: WorkloadCluster
    credentials: CredentialsSent | None = None
    """The facts of the last call-back, without secrets; None: nothing was sent."""
    vim_id: str | None = None
    machines: tuple[MachineFacts, ...] = Field(default=())
    vdus: tuple[VduTarget, ...] = ()
    """The owners of Machines that implement VDUs; none: an earlier version has not stored them."""


WORKLOAD: Final = "workload"
"""The key of a workload cluster's VIM in ``vimConnectionInfo`` of the instance that has built it (capi.md CR-083)."""


WORKLOAD_VIM_ID: Final = "workloadVimId"
"""The entry of the instance's ``metadata`` with the id of that VIM."""


def workload_connection(vim: VimRegistered) -> VimConnectionInfo:
    """Return the entry for the VIM of a workload cluster: reference and endpoint, without access data (CR-083)."""
    return VimConnectionInfo(vim_id=vim.vim_id, vim_type=KUBERNETES, interface_info={"endpoint": vim.endpoint})
