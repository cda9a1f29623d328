"""The stored credentials of one workload cluster."""

from __future__ import annotations

from typing import Any, Final, Literal

from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_clients.callback import credentials_id
from kubevnfm_secrets import KeyRing
from pydantic import BaseModel, ConfigDict

from kubevnfm_credentials_receiver.domain.callback_body import Callback

_MOST_REQUESTS: Final = 32
"""Stored requests of one cluster. A sender repeats a request within minutes, not after so many others."""


class Request(BaseModel):
    """A call-back that was handled, so that its repeat is recognised."""

    model_config = ConfigDict(frozen=True)

    key: str
    """Its Idempotency-Key."""
    body_sha256: str


class Record(BaseModel):
    """A cluster's credentials and attributes."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    id: str
    vnf_instance_id: str
    cluster_name: str
    cluster_namespace: str = ""
    cluster_uid: str
    endpoint: str = ""
    kubernetes_version: str = ""
    infrastructure_provider: str = ""
    management_vim_id: str | None = None
    auth_type: str | None = None
    expires_at: str | None = None
    register_vim: bool = True
    vim_name: str | None = None
    vim_default: bool = False
    status: Literal["STORED", "DELETED"] = "STORED"
    content_sha256: str = ""
    """Hash of the kubeconfig."""
    sealed: str = ""
    """The kubeconfig, encrypted with the instance id as associated data (CR-071); "" for a deleted cluster."""
    requests: tuple[Request, ...] = ()
    signed_at: int = 0
    """When the call-back was signed that was stored last, Unix seconds; 0: an earlier version has stored it."""
    created_at: str
    updated_at: str

    def view(self) -> dict[str, Any]:
        """Return the attributes that readers may see, without the kubeconfig (CR-071)."""
        return self.model_dump(mode="json", exclude={"sealed", "requests", "signed_at"}, exclude_none=True)

    def document(self) -> dict[str, Any]:
        """Return the body for the store."""
        return self.model_dump(mode="json", exclude={"id"}, exclude_none=True)

    def with_request(self, request: Request) -> Record:
        """Return the record with the request added to those that it stores."""
        return self.model_copy(update={"requests": (*self.requests, request)[-_MOST_REQUESTS:]})

    def kubeconfig(self, ring: KeyRing) -> str:
        """Return the kubeconfig."""
        return ring.open(self.sealed, bound_to=self.vnf_instance_id)

    def erased(self, *, now: str, signed_at: int) -> Record:
        """Return the record of a deleted cluster, without its credentials."""
        # The record itself stays, because a late CREATED must not bring the credentials back.
        return self.model_copy(
            update={
                "status": "DELETED",
                "sealed": "",
                "content_sha256": "",
                "updated_at": now,
                "signed_at": max(signed_at, self.signed_at),
            }
        )


def new_record(
    callback: Callback, awaited: AwaitedCallback, *, sealed: str, content_sha256: str, now: str, signed_at: int
) -> Record:
    """Return the record for a call-back: the credentials are from its body, the VIM and the management cluster from the operation."""
    credentials = callback.credentials
    expires_at = credentials.expires_at if credentials else None
    return Record(
        id=credentials_id(callback.vnf_instance_id, callback.cluster.uid),
        vnf_instance_id=callback.vnf_instance_id,
        cluster_name=awaited.cluster_name,
        cluster_namespace=awaited.cluster_namespace,
        cluster_uid=callback.cluster.uid,
        endpoint=callback.cluster.endpoint,
        kubernetes_version=callback.cluster.kubernetes_version,
        infrastructure_provider=callback.cluster.infrastructure_provider,
        management_vim_id=awaited.management_vim_id,
        auth_type=credentials.auth_type if credentials else None,
        expires_at=expires_at.isoformat() if expires_at else None,
        register_vim=awaited.register_vim,
        vim_name=awaited.vim_name,
        vim_default=awaited.vim_default,
        content_sha256=content_sha256,
        sealed=sealed,
        signed_at=signed_at,
        created_at=now,
        updated_at=now,
    )
