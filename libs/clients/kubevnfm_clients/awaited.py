"""The call-back that lcm-api awaits for a VNF instance (capi.md chapter 10): what its operation says of cluster and VIM.

A package signs call-backs, so a call-back proves the credentials of its cluster and nothing else. The receiver takes all other
facts from here.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

CallbackEvent = Literal["CREATED", "ROTATED", "DELETED"]


class AwaitedCallback(BaseModel):
    """One call-back, as the operation or the rotation that has asked for it describes it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    event: CallbackEvent
    operation_id: str
    """The occurrence or the rotation."""
    vnfd_id: str = ""
    management_vim_id: str | None = None
    cluster_name: str
    cluster_namespace: str
    cluster_uid: str | None = None
    """As the management cluster has reported it; None: an operation of an earlier version has not stored it."""
    register_vim: bool = True
    """The operation registers the VIM, by vim-registry; the receiver stores these three and publishes them."""
    vim_name: str | None = None
    vim_default: bool = False
