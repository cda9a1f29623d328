"""Credentials of workload clusters: how mgmt-executor sends them, and what credentials-receiver stores (capi.md 9 and 10)."""

from __future__ import annotations

from typing import Literal

from kubevnfm_kit.error_text import ErrorText

from kubevnfm_events.base import Command, Event, Facts
from kubevnfm_events.common import VimConnection

CredentialsMode = Literal["service_account", "admin_kubeconfig"]


class WorkloadCluster(Facts):
    """A Cluster object of Cluster API in its management cluster."""

    name: str
    namespace: str
    api_version: str = "cluster.x-k8s.io/v1beta2"
    """The version that the package uses; the object is read in it (CR-037)."""


class CredentialsSent(Event, kind="mgmt.credentials.sent"):
    """The receiver has accepted the cluster's credentials, or a script of the package that sends them has ended well."""

    cluster_uid: str
    endpoint: str
    """``https://host:port`` of the cluster's API server."""
    kubernetes_version: str = ""
    contract: str
    """``v1beta1`` or ``v1beta2``."""
    infrastructure_provider: str = ""
    """``openstack`` for OpenStackCluster, and so on: the kind of the infrastructure, in lower case."""
    content_sha256: str = ""
    """Hash of the kubeconfig that was sent, hex; "" if a script has sent it, as only the script knows its content."""
    auth_type: Literal["bearer_token", "client_certificate"] | None = None
    """None if a script has sent it."""
    expires_at: str | None = None
    """RFC 3339; None: they do not expire."""
    secret_resource_version: str = ""
    """``resourceVersion`` of the kubeconfig Secret that was read; "": an earlier version has not reported it."""
    is_unchanged: bool = False
    """Whether nothing was sent, because the receiver has accepted the same credentials before (a rotation)."""


class SendCredentials(Command, kind="mgmt.send_credentials", service="mgmt-executor", reply=CredentialsSent):
    """Read a workload cluster's kubeconfig Secret and send its credentials to the receiver; a repeat changes nothing.

    To be asked after the condition ControlPlaneInitialized: the Secret exists before the cluster answers.
    """

    vnf_instance_id: str
    vnfd_id: str = ""
    vim: VimConnection
    """The management cluster; its ``vim_id`` becomes ``managementVimId``."""
    cluster: WorkloadCluster
    mode: CredentialsMode = "service_account"
    """``service_account``: a token that is made in the workload cluster; ``admin_kubeconfig``: the Secret as it is."""
    cluster_role: str = "cluster-admin"
    """``service_account``: the ClusterRole of the token."""
    callback_url: str | None = None
    """None: the configured one. Another host must be on the allow-list of mgmt-executor; ``${vnfInstanceId}`` is filled in."""
    register_vim: bool = True
    vim_name: str | None = None
    vim_default: bool = False
    is_rotation: bool = False
    """Whether the event of the call-back is ROTATED instead of CREATED. Nothing is sent then if the credentials are those
    that the receiver has accepted last."""


class CredentialsWithdrawn(Event, kind="mgmt.credentials.withdrawn"):
    """The receiver has erased the cluster's credentials, or has never had any."""

    cluster_uid: str | None = None
    """None: the management cluster has no such Cluster, and none was named; nothing was sent."""
    problem: ErrorText = ""
    """With ``force``: why the receiver could not be reached, or what it refused."""


class WithdrawCredentials(
    Command, kind="mgmt.withdraw_credentials", service="mgmt-executor", reply=CredentialsWithdrawn
):
    """Send DELETED for a workload cluster; a repeat changes nothing."""

    vnf_instance_id: str
    vnfd_id: str = ""
    vim: VimConnection
    cluster: WorkloadCluster
    cluster_uid: str | None = None
    """From CredentialsSent; None: it is read from the Cluster object, as far as that exists."""
    endpoint: str = ""
    callback_url: str | None = None
    """As for SendCredentials."""
    force: bool = False
    """Rollback, FORCEFUL termination: a receiver that refuses or does not answer does not hold it up."""


class CredentialsEvent(Event):
    """The attributes of every event about stored credentials."""

    credentials_id: str
    vnf_instance_id: str
    cluster_name: str
    cluster_uid: str


class CredentialsStored(CredentialsEvent):
    """The attributes of every event about credentials that a cluster has now."""

    content_sha256: str
    register_vim: bool = True
    vim_name: str | None = None
    vim_default: bool = False
    management_vim_id: str | None = None


class CredentialsReceived(CredentialsStored, kind="credentials.received", by="credentials-receiver"):
    """New credentials are stored. The event holds no secret: vim-registry fetches them by id.

    Cluster, VIM and management VIM are those of the operation that has asked for the credentials.
    """


class CredentialsRotated(CredentialsStored, kind="credentials.rotated", by="credentials-receiver"):
    """A cluster's credentials were replaced."""


class CredentialsDeleted(CredentialsEvent, kind="credentials.deleted", by="credentials-receiver"):
    """A cluster was deleted and its credentials are erased."""
