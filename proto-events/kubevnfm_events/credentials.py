"""Credentials of workload clusters, which the clusters send to credentials-receiver (capi.md chapter 10)."""

from __future__ import annotations

from kubevnfm_events.base import Event


class CredentialsReceived(Event, kind="credentials.received", by="credentials-receiver"):
    """New credentials are stored. The event holds no secret: vim-registry fetches them by id."""

    credentials_id: str
    vnf_instance_id: str
    cluster_name: str
    cluster_uid: str
    content_sha256: str
    register_vim: bool = True
    vim_name: str | None = None
    vim_default: bool = False


class CredentialsRotated(Event, kind="credentials.rotated", by="credentials-receiver"):
    """A cluster's credentials were replaced."""

    credentials_id: str
    vnf_instance_id: str
    cluster_name: str
    cluster_uid: str
    content_sha256: str
    register_vim: bool = True
    vim_name: str | None = None
    vim_default: bool = False


class CredentialsDeleted(Event, kind="credentials.deleted", by="credentials-receiver"):
    """A cluster was deleted and its credentials are erased."""

    credentials_id: str
    vnf_instance_id: str
    cluster_name: str
    cluster_uid: str
